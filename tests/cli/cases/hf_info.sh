ln -s "$VECTORS/llama_gqa/hf-sharded" model
qkv info -m model --hash | grep -v tokenizer
qkv info -m "$VECTORS/gpt_oss/hf" --json | grep -v 'path\|tokenizer'
qkv tokens -m model "The river and the mill" >a
qkv tokens -m "$VECTORS/llama_gqa/model.gguf" "The river and the mill" >b
cmp a b
