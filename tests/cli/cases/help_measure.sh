qkv measure --help
