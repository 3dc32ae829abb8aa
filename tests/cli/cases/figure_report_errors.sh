# A report has a known format, a place to go to, and weights to be about.
try() {
    qkv figure "$@"
    echo "exit $?" >&2
}
try modify --report out.txt
try modify --report missing/out.md
try modify --report out.md --report out.md
try grid --row 'A=' --show scores --report out.md
ls
