# --quiet leaves errors on standard error and nothing else; --verbose says more.
quiet() {
    "$@" --quiet 2>err >out || echo "exit $?"
    cat err
}
quiet qkv run -p 'A quiet street.' --capture pattern@0 --variant 'q@1=zero'
quiet qkv figure modify -p 'A quiet street.' -o a.png
quiet qkv sweep -p 'A quiet street.' --epsilon 1 --metrics tv -o r.sqlite
quiet qkv sweep export r.sqlite -o -
quiet qkv plot r.sqlite -o -
quiet qkv figure modify -q -p ''
qkv run -v -p 'A quiet street.' --capture pattern@0 2>&1 >out | sed 's,model .*/,model ,; s/[0-9.e-]* s$/TIME/; s/[0-9.]* GFLOP, [0-9.]*/N GFLOP, N/'
qkv figure modify --verbose -p 'A quiet street.' --layer 0 --head 0 -o a.png 2>&1 | sed 's,model .*/,model ,; s/[0-9.e-]* s$/TIME/; s/[0-9.]* GFLOP, [0-9.]*/N GFLOP, N/'
qkv info --quiet --verbose
echo "exit $?" >&2
qkv info --quiet=yes
