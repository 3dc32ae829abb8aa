qkv generate --help
