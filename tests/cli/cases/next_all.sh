# Losses of a prompt; in blocks (1 MiB is 64 rows of logits) the same; the mean is the metric's.
qkv next -p 'The river runs to the sea.' --all --variant 'z@3.h1=zero' --variant 'q@5[2]=zero'
prompt=$(yes 'The river runs to the sea.' | head -14 | tr '\n' ' ')
qkv next -p "$prompt" --all --variant 'z@3.h1=zero' -o whole.csv >/dev/null
qkv next -p "$prompt" --all --variant 'z@3.h1=zero' --memory 1 -o blocks.csv >/dev/null
wc -l <whole.csv
cmp whole.csv blocks.csv
qkv next -p "$prompt" --all --table variants -o - | sed -n 's/.*baseline,\([0-9.]\{8\}\).*/\1/p'
qkv measure -p "$prompt" --metrics loss -o - | sed -n 's/.*loss,\([0-9.]\{8\}\).*/\1/p'
