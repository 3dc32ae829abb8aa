# Names of any letters: every line of the CSV has six fields.
name=$(printf 'a\303\251,"b')
qkv measure -p 'one two' --source "$name=one two" --variant "q@0=patch:$name" --metrics tv -o out.csv -o out.json >/dev/null
tail -n 1 out.csv
grep -c 'patch:a' out.json
