qkv next --help
