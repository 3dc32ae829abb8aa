qkv models --help
