qkv help notation
