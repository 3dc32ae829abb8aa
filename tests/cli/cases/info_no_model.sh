qkv info -m nowhere.gguf
