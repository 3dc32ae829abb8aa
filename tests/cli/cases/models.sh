# What is on this machine, whole or not, by the names that -m takes; then nothing but the default model.
. "$VECTORS/../cli/fake_hub.sh"
one=1111111111111111111111111111111111111111 two=2222222222222222222222222222222222222222
hub_add_all mill/river $one "$VECTORS/llama_gqa/hf-sharded"
hub_ref mill/river main $one
hub_add_all mill/river $two "$VECTORS/gpt2/hf"
hub_ref mill/river v2 $two
hub_add mill/river-GGUF $one river-Q4_K_M.gguf "$VECTORS/llama_gqa/model.gguf"
hub_add mill/river-GGUF $one Q8_0/river-Q8_0-00001-of-00002.gguf "$VECTORS/llama/model.gguf"
echo no model >text
hub_add mill/river-GGUF $one river-Q2_K.gguf text
hub_add mill/river-GGUF $one config.json "$VECTORS/llama_gqa/hf/config.json"
hub_add mill/river-GGUF $one mmproj-F16.gguf "$VECTORS/llama_gqa/model.gguf"
hub_ref mill/river-GGUF main $one
hub_add mill/half $one config.json "$VECTORS/llama_gqa/hf/config.json"
hub_ref mill/half main $one
hub_ref mill/evil main ../../../../etc
mkdir -p "$QKV_CACHE/models/tiny" "$QKV_CACHE/models/mini"
cp "$VECTORS/llama/model.gguf" "$QKV_CACHE/models/tiny/tiny.gguf"
cp "$VECTORS"/bert/hf/* "$QKV_CACHE/models/mini"
tidy() {
    sed "s,[^ ]*/models/default.gguf,DEFAULT,; s,$PWD/,,g; s,  *,  ,g"
}
qkv models | tidy
qkv models --json >models.json
tr -d ' \n' <models.json | sed 's/},/},\n/g' | grep -o '"name":.*' | sed "s,$PWD/,,g; s,\"[^\"]*default.gguf\",DEFAULT,g" | grep 'river"\|Q2_K\|tiny\|DEFAULT' | sed 's/"size":[0-9]*/SIZE/'
echo
rm -r "$QKV_CACHE" "$HF_HUB_CACHE"
qkv models | tidy
env -u HOME -u HF_HUB_CACHE -u QKV_CACHE -u XDG_CACHE_HOME "$QKV" models | tidy
qkv models extra
