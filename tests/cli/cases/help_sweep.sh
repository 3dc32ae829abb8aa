qkv sweep --help
