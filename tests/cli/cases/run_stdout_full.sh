qkv run --tokens 5,6 --capture 'pattern@*' >/dev/full
