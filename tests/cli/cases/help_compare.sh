qkv compare --help
