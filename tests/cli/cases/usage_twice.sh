# A second value would leave the first without effect; lists and flags may be repeated.
qkv figure modify --layer 1 --layer 2 -o a.png
