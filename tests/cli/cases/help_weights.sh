qkv weights --help
