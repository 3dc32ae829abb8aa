qkv figure weather -o a.png
