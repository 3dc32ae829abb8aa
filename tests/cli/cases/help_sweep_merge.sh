qkv sweep merge --help
