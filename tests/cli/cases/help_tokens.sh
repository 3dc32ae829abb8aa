qkv help tokens
