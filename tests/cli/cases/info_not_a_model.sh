printf "this is no model" >text.gguf
qkv info -m text.gguf
