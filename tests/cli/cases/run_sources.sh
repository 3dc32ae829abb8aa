# Where patched values came from is told in the metadata.
qkv run --tokens 5,6 --source-tokens a=7,8 --source-tokens b=9,10 --variant 'q@1=patch:a' \
    --variant 'q@1=patch:b' --capture pattern@1 -o out.json
grep '"source' out.json
