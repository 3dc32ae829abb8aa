# Reduced patterns and rows of logits have names of their own, in the table and in files.
qkv run --tokens 5,6,7,8 --capture pattern@1.h0:first --capture pattern@1:mean=2 --capture pattern@1 \
    --capture 'logits[-1,1]' --capture pattern@1:diagonals | awk '{ print $1, $2 }'
qkv run --tokens 5,6,7,8 --capture pattern@1.h0:first --capture pattern@1:columns --capture pattern@1:max=9 \
    --capture 'logits[-1,1]' -o out.json
grep -E '"(captures|heads|side|logits)' out.json
grep -o '^"v0/[^:]*' out.json
