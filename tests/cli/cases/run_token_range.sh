qkv run --tokens 5,99999999 --capture pattern@0
