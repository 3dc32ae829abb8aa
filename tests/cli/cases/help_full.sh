qkv run --help >/dev/full
