# Recipes that are studies: their prompts, others, options that are set, files; prompts from CSV.
cat >r.json <<'END'
{"title": "A lens", "about": "Of one prompt.", "study": "lens", "options": {"top": 1, "answer": " sea"},
 "prompts": ["The river runs to the"]}
END
qkv recipe r.json
qkv recipe r.json -p 'The river' --set top=2 --set 'answer= was' -o l.png -o l.json --picture top
qkv reproduce l.png --check
grep -c '"recipe": {' l.json
printf '{"study": "lens", "options": {"top": 1}}' >bare.json
qkv recipe bare.json | head -3
printf 'id,text,note\r\n1,"The river, ""wide"",\nruns",a\r\n\r\n2,The sea,b\n' >p.csv
qkv next -f p.csv --column text --prompt-template 'Now: {}' --top 1 --json | grep '"text": "Now'
try() { qkv recipe "$@" >out; echo "exit $?, $(wc -c <out) bytes" >&2; }
try r.json --set top
try r.json --set top=x
try r.json --set nothing=1
try r.json --column text
try r.json -f p.csv --column text
try r.json -f p.csv --column texts
try r.json -p hi --column text
try r.json -p hi --prompt-template none
printf 'a,b\n"x' >open.csv
try r.json -f open.csv --column a
printf 'a,b\n1\n' >short.csv
try r.json -f short.csv --column b
printf 'a,b\n"1"2,3\n' >behind.csv
try r.json -f behind.csv --column a
printf 'a,b\n,3\n' >empty.csv
try r.json -f empty.csv --column a
printf '{"study": "lenses"}' >bad.json; try bad.json
printf '{"study": 5}' >bad.json; try bad.json
printf '{"study": "lens", "sweep": {}}' >bad.json; try bad.json
printf '{"study": "lens", "options": []}' >bad.json; try bad.json
printf '{"study": "lens", "prompts": [5]}' >bad.json; try bad.json
try undifferentiated --set a=1
try undifferentiated --picture a
try undifferentiated -o a.sqlite -o b.sqlite
ls
