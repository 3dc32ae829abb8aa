qkv figure --help
qkv help figure | cmp - /dev/fd/3 3<<END
$(qkv figure --help)
END
