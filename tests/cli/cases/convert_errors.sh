qkv convert
qkv convert model
qkv convert a b -o out.gguf
qkv convert "$VECTORS/llama/hf" -o out.gguf --type q4_9 2>&1 | cut -c 1-63 >&2
qkv convert "$VECTORS/llama/hf" -o out.gguf --type iq1_s
qkv convert "$VECTORS/llama/hf" -o no/such/place/out.gguf
mkdir pickles parts empty broken
qkv convert empty -o out.gguf
cp "$VECTORS/llama/hf/config.json" pickles
: >pickles/pytorch_model.bin
qkv convert pickles -o out.gguf
cp "$VECTORS/llama_gqa/hf-sharded/config.json" "$VECTORS/llama_gqa/hf-sharded/"*.index.json parts
cp "$VECTORS/llama_gqa/hf-sharded/"*00001-of* parts
qkv convert parts -o out.gguf
echo '{"architectures": ["LlamaForCausalLM"],' >broken/config.json
qkv convert broken -o out.gguf
sed 's/"silu"/"quick_gelu"/' "$VECTORS/llama/hf/config.json" >broken/config.json
qkv convert broken -o out.gguf
cp -r "$VECTORS/llama/hf" own
qkv convert own -o own/model.safetensors
qkv convert own/model.safetensors -o out.gguf
qkv info -m own >/dev/null || echo "the model is gone"
ls -- *.gguf 2>/dev/null
