qkv run --tokens=-1 --capture pattern@0
