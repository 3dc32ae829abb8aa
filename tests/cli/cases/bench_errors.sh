TMPDIR=$PWD
export TMPDIR
qkv-bench --only forward,backward
qkv-bench --shape 2,4,2,32,64,100,16 -T 17 2>&1 | sed 's|/.*/||' >&2
qkv-bench -m nothing.gguf
qkv-bench --shape 2,4,2,32,64,100 -T 0
qkv-bench --keep /no/such/place
qkv-bench --json forward
ls # no temporary directory is left
