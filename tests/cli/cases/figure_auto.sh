# The layer alone, the head alone.
qkv figure modify --layer 1 -o a.svg
qkv figure modify --head 2 -o b.svg
