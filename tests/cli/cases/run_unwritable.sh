# Told before anything is computed, and nothing is left.
qkv run --tokens 5,6 --capture pattern@0.h0 -o a.npy -o nowhere/b.npy
echo "exit $?" >&2
mkdir c.npy
qkv run --tokens 5,6 --capture pattern@0.h0 -o c.npy
echo "exit $?" >&2
ls
