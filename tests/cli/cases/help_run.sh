qkv run --help
