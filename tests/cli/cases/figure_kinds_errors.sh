# Mistakes about several heads, layers and prompts: one line each.
try() {
    qkv figure "$@" -o out.png
    echo "exit $?" >&2
}
try heads --layer 9
try heads --layers 4-9
try heads --layers 1 --layer 2
try heads --diff
try heads --variant 'q@0=zero' --baseline
try heads --tokens 5,6 --tokens 7,8
try heads --report out.html
try heads --variant 'Q@0=zero'
try heads --layers 0 --variant 'q@3=zero'
try rows --tokens 5,6,7 --query 3
try rows --tokens 5,6,7 --query -4
try rows --head 9
try rows --baseline
try rows --report out.md
try grid --tokens 5,6
ls
