# A full disk under standard output is a failure.
qkv info >/dev/full
