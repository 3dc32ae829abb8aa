# Queries of almost nothing: row i is 1/(i+1) up to the diagonal, 0 behind it.
qkv run --tokens 5,6,7,8 --variant 'q@0.h0=scale:1e-10' --capture pattern@0.h0 -o out.safetensors
tail -c 64 out.safetensors | od -An -v -tf4 | awk '{ printf "%.4f %.4f %.4f %.4f\n", $1, $2, $3, $4 }'
