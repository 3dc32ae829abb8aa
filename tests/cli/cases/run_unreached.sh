# Values do not reach the weights of their own layer: the table says that nothing captured changed.
qkv run --tokens 5,6 --variant 'v@1=zero' --capture pattern@1
