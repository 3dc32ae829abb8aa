# Direct logit attribution: parts add up to the logit; a difference of two tokens; a page; what cannot be.
qkv lens -p 'The river runs to the' --answer ' sea' --heads -o h.png -o h.html
qkv next -p 'The river runs to the' --of ' sea' -o - | tail -n 1 | cut -d, -f9 | cut -c 1-6
qkv lens -p 'The river runs to the' --answer ' sea/ land' --heads --table layers
qkv next -p 'The river runs to the' --diff ' sea/ land' -o - | tail -n 1 | cut -d, -f9 | cut -c 1-6
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
