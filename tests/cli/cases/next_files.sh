# Several prompts, as CSV and as JSON, in files and on standard output.
printf 'The river\n\nA "small", bird\n' >prompts
short() { sed 's/\([0-9]\.[0-9]\{4\}\)[0-9]*/\1/g'; }
qkv next -f prompts --top 2 --of ' of,\,' --diff ' of/\x0a' --variant 'v@*=scale:0.5' -o out.csv -o out.json
short <out.csv
qkv next -f prompts --top 2 --of ' of,\,' --diff ' of/\x0a' --variant 'v@*=scale:0.5' --json | cmp - out.json
qkv next -f prompts --top 2 --of ' of,\,' --diff ' of/\x0a' --variant 'v@*=scale:0.5' -o - | cmp - out.csv
qkv next -p 'The river' --all --variant 'v@*=scale:0.5' -o - | short
qkv next -p 'The river' --of ' was' -o - --format json | short
