# '-o -' writes to standard output what a file would get; messages go to standard error.
run="qkv run -p A.quiet.street. --capture pattern@0"
for format in safetensors json npz npy; do
    $run -o a.$format && $run -o - --format $format | cmp - a.$format
done
for format in png svg pdf; do
    SOURCE_DATE_EPOCH=0 qkv figure modify -q -p 'A quiet street.' -o - --format $format >fig.$format
done
head -c 4 fig.png | od -An -c
head -c 5 fig.svg
head -c 4 fig.pdf
echo
qkv measure -p A --metrics sink --layers 0 --no-recipe -o m.csv -o m.json >/dev/null
qkv measure -p A --metrics sink --layers 0 -o - | cmp - m.csv
qkv measure -p A --metrics sink --layers 0 --no-recipe -o - --format json | cmp - m.json
qkv sweep -q -p A --epsilon 1 --layers 0 --metrics tv -o r.sqlite
qkv sweep export r.sqlite -o s.csv -o - --format json >s.json
qkv sweep export r.sqlite -o - | cmp - s.csv
qkv sweep export r.sqlite -o t.json && cmp s.json t.json
qkv plot r.sqlite --kind heatmap -o - --format svg | head -c 5
echo
qkv convert "$MODELS/default.gguf" -o c.gguf
qkv convert "$MODELS/default.gguf" -o - | cmp - c.gguf
ls | tr '\n' ' '
echo
# What cannot be.
try() {
    "$@" || echo "exit $?" >&2
}
try $run -o -
try $run -o - --format gif
try $run -o - -o - --format npy
try $run -o a.npy --format npy
try $run -o - --format json --json
try qkv measure -p A --json -o -
try qkv figure modify -o - -o a.svg
try qkv sweep -p A --epsilon 1 -o -
try qkv sweep merge -o - r.sqlite
try qkv recipe gu-sink -o -
$run -o - --format json >/dev/full || echo "exit $?" >&2
# A terminal does not get a binary format.
for command in "$run -o - --format npz" "qkv figure modify -o - --format png" "qkv convert $MODELS/default.gguf -o -"; do
    python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) != 512)' $command </dev/null
done
