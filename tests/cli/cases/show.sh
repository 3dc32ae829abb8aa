# What files say about themselves, and the numbers of a tensor.
p='The river runs past the old mill.'
qkv run -p "$p" --variant 'q@5.h0=scale:0.5 + v@2=zero' --capture pattern@5.h0 --capture pattern@4:first \
    --capture 'logits[-1]' -o out.safetensors -o out.json
qkv show out.safetensors | grep -v '^model_hash\|^qkv_version'
qkv show out.safetensors --tensor v0/pattern.4.first
qkv show out.json --tensor v0/pattern.4.first >json.txt
qkv show out.safetensors --tensor v0/pattern.4.first | cmp - json.txt
qkv show out.json --json >a
qkv show out.safetensors --json >b
sed 's/"format": "json"/"format": "safetensors"/; s/"F64"/"F32"/' a | cmp - b
qkv show out.safetensors --tensor v1/pattern.5 --json | tail -3
qkv run -p "$p" --capture pattern@5.h0 -o one.npy
qkv show one.npy
qkv sweep -p "$p" --layers 0 --heads 0 --targets q --epsilon 0.5 --metrics sink,entropy -o s.sqlite 2>/dev/null
qkv show s.sqlite | grep -v hash
qkv figure modify --layer 5 --head 0 -p "$p" -o m.png --data data.safetensors
qkv show data.safetensors --tensor r0.c0 | head -3
qkv measure -p "$p" --metrics sink --layers 0 -o m.json >/dev/null
qkv show m.json | grep '^study\|^title'
for wrong in nothing s.sqlite "$MODELS/default.gguf" "$0" "$MODELS"; do
    qkv show "$wrong" --tensor x
done 2>&1 | sed "s|$MODELS|MODELS|g; s|$(dirname "$0")|CASES|g"
qkv show out.safetensors --tensor v1/patern.5
qkv show out.safetensors --tensor v0/logits >/dev/null && head -c 300 out.safetensors >cut.safetensors
qkv show cut.safetensors
# Without values an axis can have any length.
put_npy() {
    header="{'descr': '<f4', 'fortran_order': False, 'shape': ($1), }"
    printf '\223NUMPY\001\000%b\000%s' "\\0$(printf %o ${#header})" "$header" >empty.npy
}
put_npy '0, 4000000000000000000, 4000000000000000000'
qkv show empty.npy --tensor empty.npy
put_npy '4000000000000000000, 0'
qkv show empty.npy --tensor empty.npy --json
true
