qkv tokens -f nowhere.txt
