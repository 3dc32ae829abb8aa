# Every command takes a name where it takes a model, and gives what the file gives.
. "$VECTORS/../cli/fake_hub.sh"
one=1111111111111111111111111111111111111111
hub_add_all mill/river $one "$VECTORS/llama_gqa/hf-sharded"
hub_ref mill/river main $one
hub_add mill/river-GGUF $one river-F32.gguf "$VECTORS/llama_gqa/model.gguf"
hub_add mill/river-GGUF $one river-Q8_0.gguf "$VECTORS/llama/model.gguf"
hub_ref mill/river-GGUF main $one
mkdir -p "$QKV_CACHE/models/tiny"
cp "$VECTORS/llama_gqa/model.gguf" "$QKV_CACHE/models/tiny/tiny.gguf"
file=$VECTORS/llama_gqa/model.gguf

show() {
    sed "s,$PWD/,," | grep '^given\|^revision\|^file \|^name\|given_as\|"revision\|commit\|"path'
}
qkv info -m mill/river | show
qkv info -m mill/river@1111111 | show
qkv info -m mill/river-GGUF:f32 --json | show
QKV_MODEL=tiny qkv info | show
QKV_MODEL=mill/river-GGUF:river-Q8_0.gguf qkv info | show
qkv info -m "$file" | grep -c '^given\|^revision'

same() {
    name=$1
    shift
    "$@" -m "$file" >by_file 2>&1
    "$@" -m "$name" >by_name 2>&1
    cmp by_file by_name && echo "same: $name, $2"
}
for name in mill/river-GGUF:F32 tiny; do
    same $name qkv tokens "The river and the mill"
    same $name qkv run --tokens 1,2,3 --capture pattern@0
    same $name qkv measure --tokens 1,2,3 --metrics sink
done
same mill/river qkv tokens "The river and the mill"

# Names say nothing about this machine, and the recipe is one to repeat; paths are cut.
qkv figure modify -m mill/river-GGUF:F32 --tokens 1,2,3 --layer 0 --head 0 -o a.svg
grep -c 'mill/river-GGUF:F32' a.svg
grep -c 'snapshots' a.svg
grep -o 'river-F32.gguf' a.svg | sort -u
QKV_MODEL=mill/river qkv figure modify --tokens 1,2,3 --layer 0 --head 0 -o a.svg --report a.md
grep -o '"model":"[^"]*"' a.svg
grep -c "$HF_HUB_CACHE" a.svg a.md
grep -o 'river (1*)' a.md

# Of a sweep the file tells which model it was.
echo '{"model": "mill/river-GGUF:F32", "prompts": ["The river"], "targets": "q", "ops": "zero", "metrics": "sink"}' >spec.json
qkv sweep spec.json -o a.sqlite 2>errors && qkv sweep spec.json -m "$file" -o a.sqlite 2>errors && echo "one model"

qkv convert mill/river -o a.gguf && qkv convert "$VECTORS/llama_gqa/hf-sharded" -o b.gguf
cmp -n 24 a.gguf b.gguf && qkv info -m a.gguf | grep '^name'
