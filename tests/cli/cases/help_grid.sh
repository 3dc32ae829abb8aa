qkv figure grid -h
