qkv pull --help
