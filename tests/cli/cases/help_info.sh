qkv info --help
