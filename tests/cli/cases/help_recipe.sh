qkv recipe --help
