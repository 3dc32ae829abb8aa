# Names of any bytes: the CSV is UTF-8, and every line has six fields.
name=$(printf 'a\377,"b')
qkv measure -p 'one two' --source "$name=one two" --variant "q@0=patch:$name" --metrics tv -o out.csv -o out.json >/dev/null
tail -n 1 out.csv
grep -c 'patch:a' out.json
