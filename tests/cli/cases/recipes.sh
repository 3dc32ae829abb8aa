# Every recipe that comes with qkv runs, on two short prompts.
for name in $(qkv recipe | awk '{ print $1 }'); do
    qkv recipe "$name" --print | sed 's/"length": 64/"length": 8/' >r.json
    qkv recipe r.json -p 'The river runs past the old mill and turns south.' -p 'Bread is made of flour.' >out || continue
    echo "$name: $(head -n 1 out)"
    grep -c . out
done
