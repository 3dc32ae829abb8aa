qkv figure rows -h
