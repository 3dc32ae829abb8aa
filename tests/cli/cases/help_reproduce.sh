qkv reproduce --help
qkv recipe extract --help
qkv recipe insert --help
qkv recipe copy --help
