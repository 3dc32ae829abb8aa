qkv help figure mean
