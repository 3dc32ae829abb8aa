qkv serve --help
