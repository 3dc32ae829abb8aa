qkv info
