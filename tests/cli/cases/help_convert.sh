qkv convert --help
