qkv info --json --hash
