qkv sweep export --help
