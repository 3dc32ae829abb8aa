qkv --help
