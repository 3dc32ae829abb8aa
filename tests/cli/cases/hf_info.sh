ln -s "$VECTORS/llama_gqa/hf-sharded" model
qkv info -m model --hash | grep -v tokenizer
qkv info -m "$VECTORS/gpt_oss/hf" --json | grep -v 'path\|tokenizer'
