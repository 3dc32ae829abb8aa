qkv figure modify --help
