ln -s /dev/full out.safetensors
ln -s /dev/full out.json
qkv run --tokens 5,6 --capture 'pattern@*' -o out.safetensors
echo "exit $?" >&2
qkv run --tokens 5,6 --capture 'pattern@*' -o out.json
echo "exit $?" >&2
ls
