# Massive activations: found, set, drawn; none at the paper's thresholds; what cannot be.
short() { sed 's/\([0-9]\.[0-9]\{3\}\)[0-9]*/\1/g'; }
one='The river runs past the old mill.' two='In the evening the lamps are lit.'
qkv recipe massive-activations -p "$one" -p "$two"
qkv recipe massive-activations -p "$one" -p "$two" --set size=60 --set ratio=40 -o m.png -o m.json -o m.csv
short <m.csv
qkv recipe massive-activations -p "$one" -p "$two" --set size=60 --set ratio=40 --table layers
qkv recipe massive-activations -p "$one" -p "$two" --set size=60 --set ratio=40 --set layer=4 --table perplexity \
    --picture perplexity -o p.svg
try() { qkv recipe massive-activations "$@" >out; echo "exit $?, $(wc -c <out) bytes" >&2; }
try -p "$one"
try -p "$one" -p "$two" --set layer=6
try -p "$one" -p "$two" --set layer=0 --set size=60 --set ratio=40
try -p "$one" -p "$two" --set size=-1
try -p "$one" -p "$two" --set size=0
try -p "$one" -p "$two" --set sizes=1
cp "$VECTORS/bert/model.gguf" encoder.gguf
try -m encoder.gguf -p "$one" -p "$two"
ls
