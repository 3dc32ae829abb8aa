# Several prompts, as CSV and as JSON, in files and on standard output.
printf 'The river\n\nA "small", bird\n' >prompts
short() { sed 's/\([0-9]\.[0-9]\{4\}\)[0-9]*/\1/g'; }
next() { qkv next -f prompts --top 2 --of ' of,\,' --diff ' of/\x0a' --variant 'v@*=scale:0.5' --no-recipe "$@"; }
next -o out.csv -o out.json
short <out.csv
next --json | cmp - out.json
next -o - | cmp - out.csv
qkv next -p 'The river' --all --variant 'v@*=scale:0.5' -o - | short
qkv next -p 'The river' --of ' was' --no-recipe -o - --format json | short
# Pages, SQLite, and a recipe from which the same comes.
next -o out.html -o out.sqlite >/dev/null
qkv next -p 'The river' --source 'far=A small old bird sings' --source-tokens 'near=5,6,7' --top 1 -o far.json \
    --variant 'v@1[1<-2]=patch:far + k@2=patch:near' >/dev/null
qkv reproduce far.json --check
