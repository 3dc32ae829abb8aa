qkv run --tokens 5,6,7 --source-tokens a=1,2 --variant 'q@1=patch:a' --capture pattern@1
