qkv bench --help
