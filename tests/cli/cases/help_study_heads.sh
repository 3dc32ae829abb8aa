qkv heads --help
