qkv patch --help
