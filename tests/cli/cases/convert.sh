ln -s "$VECTORS/mixtral/hf" model
qkv convert model -o out.gguf --type f16
qkv info -m out.gguf | grep -v 'tokenizer\|file size'
qkv convert model -o out.gguf --type Q8_0 2>notes
head -2 notes
wc -l <notes
qkv info -m out.gguf | grep 'tensor types'
qkv convert -m out.gguf -o again.gguf --type f32
qkv convert out.gguf -m out.gguf -o twice.gguf
qkv convert -o none.gguf
qkv info -m again.gguf | grep 'tensor types'
ls -- *.gguf
