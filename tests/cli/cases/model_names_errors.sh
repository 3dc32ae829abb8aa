# What is not there, or not all of it, is said in a line that names the command for it.
. "$VECTORS/../cli/fake_hub.sh"
one=1111111111111111111111111111111111111111
refused() {
    qkv info -m "$1" 2>&1 | sed "s,$PWD/,,g"
}
refused mill/river
refused mill/river@v2:Q4_K_M
refused tinyllama
refused tinylama
refused tinyllama@v2
refused ./mill/river
refused mill/river.gguf
refused river.gguf
refused "a name"
refused mill/../river
QKV_MODEL=mill/river qkv tokens text
qkv convert mill/river -o a.gguf
echo '{"model": "mill/river", "prompts": ["a"]}' >spec.json
qkv sweep spec.json -o a.sqlite
echo '{"model": 3, "prompts": ["a"]}' >spec.json
qkv sweep spec.json -o a.sqlite
ls a.*

hub_ref mill/river main $one
refused mill/river
hub_add mill/river $one config.json "$VECTORS/llama_gqa/hf/config.json"
refused mill/river
refused mill/river@v2
hub_add mill/river $one model.safetensors -
refused mill/river
hub_ref mill/river main ..
refused mill/river
hub_add mill/river-GGUF $one river-F32.gguf "$VECTORS/llama_gqa/model.gguf"
hub_add mill/river-GGUF $one river-Q8_0.gguf -
hub_ref mill/river-GGUF main $one
refused mill/river-GGUF
refused mill/river-GGUF:Q8_0
refused mill/river-GGUF:Q4_K_M
refused mill/river-GGUF:lake.gguf

# Nor does it name a command that can do nothing about it.
hub_ref gpt2 main $one
refused gpt2
mkdir -p "$QKV_CACHE/models/tinyllama"
refused tinyllama
cp "$VECTORS/llama_gqa/model.gguf" "$QKV_CACHE/models/tinyllama/tinyllama.gguf"
refused tinyllama:Q4_K_M
