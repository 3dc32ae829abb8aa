# The lens as a table, and its files; what cannot be.
short() { sed 's/\([0-9]\.[0-9]\{4\}\)[0-9]*/\1/g'; }
qkv lens -p 'The river runs to the' --answer ' sea' -o l.png -o l.svg -o l.pdf -o l.csv -o l.json -o l.sqlite
short <l.csv
qkv lens -p 'The river runs to the' --answer ' sea' --no-recipe --json >a.json
qkv lens -p 'The river runs to the' --answer ' sea' --no-recipe -o - --format json | cmp - a.json
qkv lens -p 'The river' --top 1 --table top
file=$(head -c 15 l.sqlite); echo "$file"
try() { qkv lens "$@" >out; echo "exit $?, $(wc -c <out) bytes" >&2; }
try
try -p ''
try -p 'The river' -p 'The sea'
try -p 'The river' --answer ' Constantinople'
try -p 'The river' --top 0
try -p 'The river' --table nothing
try -p 'The river' -o x.png --picture nothing
try -p 'The river' --picture top
try -p 'The river' -o x.txt
try -p 'The river' -o x.csv --dpi 20
try -p 'The river' --json -o - --format csv
cp "$VECTORS/bert/model.gguf" encoder.gguf
try -m encoder.gguf --tokens 1,2,3
ls
