qkv tokens ''
