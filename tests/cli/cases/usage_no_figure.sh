qkv figure
