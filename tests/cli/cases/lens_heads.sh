# Direct logit attribution: parts add up to the logit; a difference of two tokens; a page; what cannot be.
qkv lens -p 'The river runs to the' --answer ' sea' --heads -o h.png -o h.html
qkv next -p 'The river runs to the' --of ' sea' --json | grep -m 1 '"logit"' | sed 's/\(\.[0-9]\{4\}\).*/\1/'
qkv lens -p 'The river runs to the' --answer ' sea/ land' --heads --table layers
qkv next -p 'The river runs to the' --diff ' sea/ land' --json | grep '"difference"\|"logit_difference"\|"diff"' | sed 's/\(\.[0-9]\{4\}\).*/\1/' | head -3
qkv reproduce h.png --check
qkv reproduce h.html --check
qkv reproduce h.html -o again.html && cmp h.html again.html
try() { qkv lens "$@" >out; echo "exit $?, $(wc -c <out) bytes" >&2; }
try -p 'The river' --heads
try -p 'The river' --answer ' sea/ Constantinople'
try -p 'The river' --answer '/'
try -p 'The river' --answer ' sea/' --heads
cp "$VECTORS/bert/model.gguf" encoder.gguf
try -m encoder.gguf --tokens 1,2,3 --answer a --heads
