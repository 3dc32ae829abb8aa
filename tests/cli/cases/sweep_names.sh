# The name of an output is never empty, and never means anything but a file.
sweep="qkv sweep -p one --layers 0 --heads 0 --targets q --epsilon 0.5 --metrics tv -t 1"
for name in ':memory:' 'file:x.sqlite?mode=memory' 'file::memory:'; do
    $sweep -o "$name" 2>/dev/null || echo "exit $?"
    qkv sweep export "$name" -o out.csv && cut -d, -f 1-7 out.csv | tail -n 1
    qkv sweep merge -o all.sqlite "$name" && qkv plot "$name" -o out.svg
    rm all.sqlite out.svg out.csv
done
ls
rm ./*
# An unset variable.
check() {
    "$@" -o ''
    echo "exit $?" >&2
}
check $sweep
check qkv sweep merge one.sqlite
check qkv sweep export one.sqlite
check qkv plot one.sqlite
check qkv recipe sink-heads
check qkv measure -p one
check qkv run -p one
check qkv figure modify
check qkv convert model
check qkv sweep -p one --output=
# Names that are not places for results.
for name in /dev/null . nowhere/x.sqlite; do
    $sweep -o "$name" 2>&1 | tail -n 1 >&2
done
for name in '' : :memory: file:x; do
    qkv sweep export "$name" -o out.csv
    qkv sweep merge -o all.sqlite "$name"
    qkv plot "$name" -o out.svg
done
ls
