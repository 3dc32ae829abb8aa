# The header of NumPy's format, and rows of weights that sum to 1.
qkv run --tokens 5,6,7,8 --capture pattern@0.h0 -o out.npy
head -c 8 out.npy | od -An -c
dd if=out.npy bs=1 skip=10 count=62 2>/dev/null
echo
wc -c <out.npy
tail -c 64 out.npy | od -An -v -tf4 | awk '{ s = $1 + $2 + $3 + $4; print (s > 0.99999 && s < 1.00001) }'
tail -c 64 out.npy | od -An -v -tf4 | awk 'NR == 1 { print $1, $2, $3, $4 }'
