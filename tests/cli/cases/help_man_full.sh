# The reason is told also when the write that failed was not the last one.
qkv help --man >/dev/full
