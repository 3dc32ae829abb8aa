# Every recipe that comes with qkv runs, on two short prompts.
for name in $(qkv recipe | awk '{ print $1 }'); do
    qkv recipe "$name" --print | sed -e 's/"length": 64/"length": 8/' -e 's/"budgets": "[0-9,]*"/"budgets": "3,4"/' \
        -e 's/"recent": 16/"recent": 2/' -e 's/"window": 8/"window": 2/' -e 's/"prompt": 48/"prompt": 5/' \
        -e 's/"group": 16/"group": 4/' -e 's/"keep": 16/"keep": 4/' >r.json
    qkv recipe r.json -p 'The river runs past the old mill and turns south.' -p 'Bread is made of flour.' >out || continue
    echo "$name: $(head -n 1 out)"
    grep -c . out
done
