qkv plot --help
