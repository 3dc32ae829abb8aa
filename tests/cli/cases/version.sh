qkv --version
