# Circuits of heads as tables and files; what cannot be.
short() { sed 's/\([0-9]\.[0-9]\{3\}\)[0-9]*/\1/g'; }
qkv weights ov --top 2 -o ov.png -o ov.svg -o ov.json
qkv weights ov --top 2 --raw
qkv weights qk --layers 1 --heads 0,2-3 --table heads -o - --format csv | short
qkv weights qk --layers 1 --heads 3 --table singular -o - --format csv | head -3 | short
qkv weights ov --layers 0 --heads 3 --table eigen -o - --format csv | head -3 | short
qkv weights composition --top 1
qkv weights composition --top 1 --minus-random
qkv weights composition --layers 0,1 --heads 0 -t 1 -o pairs.csv -o pairs.png
short <pairs.csv
# Threads change nothing.
for t in 1 2; do qkv weights composition -t $t --no-recipe --top 1000000 -o $t.csv >out; done
wc -l <1.csv
cmp 1.csv 2.csv
# And again from its recipe.
qkv reproduce ov.png --check
for picture in norm effective_rank stream_copying spectrum; do qkv weights ov --picture $picture -o p.png >out; done
try() { qkv weights "$@" >out; echo "exit $?, $(wc -c <out) bytes" >&2; }
try
try oq
try ov --layers 6
try ov --heads 0-4
try ov --layers x
try qk --minus-random
try composition --layers 2
cp "$VECTORS/bert/model.gguf" encoder.gguf
try composition -m encoder.gguf
try ov -m encoder.gguf --top 1
try qk -m encoder.gguf --top 1
ls
