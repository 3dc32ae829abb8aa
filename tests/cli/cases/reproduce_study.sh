# A study made again from each kind of file that carries its recipe.
qkv lens -p 'The river runs to the' --answer ' sea' --picture rank --title 'A *Rank*' -o l.png -o l.svg -o l.pdf -o l.json >/dev/null
for f in l.png l.svg l.pdf l.json; do qkv reproduce $f --check; done
qkv reproduce l.png -o again.png && cmp l.png again.png
qkv reproduce l.json -o again.json && cmp l.json again.json
qkv reproduce l.svg -o - | cmp - l.svg
qkv reproduce l.png -o l.csv && head -c 40 l.csv
echo
# Forged ones.
try() { qkv reproduce "$@" >out; echo "exit $?, $(wc -c <out) bytes" >&2; }
forge() { sed "$1" l.json >forged.json; cmp -s l.json forged.json && echo "not forged: $1" >&2; try forged.json --check; }
forge 's/"kind": "lens",/"kind": "\/etc\/passwd",/'
forge 's/"answer": " sea"/"answer": " land"/'
forge 's/"answer": " sea"/"answer": 7/'
forge 's/"answer": " sea"/"file": "\/etc\/passwd"/'
forge 's/"picture": "rank"/"picture": 5/'
forge 's/"format": 2,/"format": 3,/'
forge 's/"texts": "[0-9a-f]*"/"texts": "00"/'
forge 's/"most": [0-9.e+-]*/"most": 9/;s/"digest": "[0-9a-f]*"/"digest": "00"/'
try l.png --other x.gguf
try l.png --results x.sqlite
try l.csv
