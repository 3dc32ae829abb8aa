# A full disk behind standard output is a failure.
qkv info >/dev/full
