qkv metrics --help
