qkv figure heads -h
