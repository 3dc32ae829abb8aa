qkv lens --help
