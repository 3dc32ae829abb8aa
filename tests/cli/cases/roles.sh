# What heads do, as tables and files; what cannot be.
qkv roles -o heads.png -o heads.svg -o heads.json
qkv roles -p 'The river runs to the sea.' --length 20 --sequences 1 --seed 3 --induction 0.9 --sink 0.2 --top 2
printf 'The dog met the cat, and the cat saw the\t dog\n\nThe river runs to the sea. It runs to the\t sea\n' >pairs.tsv
qkv roles --pairs pairs.tsv --name-mover 0.05 --top 1 -o names.csv --table heads | sed -n 1p
head -1 names.csv
wc -l <names.csv
# A list that leaves heads out says so; a CSV has all of them.
qkv roles --top 1 -o all.csv | sed -n 1,2p
wc -l <all.csv
# The same seed draws the same tokens, another one others.
for seed in 1 1 2; do qkv roles --seed $seed --table repeats -o - --format csv | cksum >>sums; done
uniq -c sums | sed 's/^ *\([0-9]*\).*/\1/'
# And again from its recipe.
qkv reproduce heads.png --check
# The name of this study in recipes of earlier versions.
echo '{"study": "heads", "options": {"top": 1}}' >former.json
qkv recipe former.json -p 'The river runs to the sea.' | sed -n 1p
for picture in labels scores; do qkv roles --picture $picture -o p.png >out; done
# Without a tokenizer: all tokens, and no BOS.
qkv roles -m "$VECTORS/llama/model.gguf" --tokens 5,6,7,8 --length 5 --sequences 1 --table repeats | wc -l
try() { qkv roles "$@" >out; echo "exit $?, $(wc -c <out) bytes" >&2; }
try --length 1
try --length 100000
try -m "$VECTORS/llama/model.gguf" --tokens 5,6,7 --length 200
try --induction 2
try --tokens 1
try --pairs nothing.tsv
printf 'The dog ran\n' >bad.tsv
try --pairs bad.tsv
printf 'The dog ran\t dog\nThe dog ran\t cat\n' >bad.tsv
try --pairs bad.tsv
printf 'The dog ran\t Constantinople\n' >bad.tsv
try --pairs bad.tsv
: >bad.tsv
try --pairs bad.tsv
cp "$VECTORS/bert/model.gguf" encoder.gguf
try -m encoder.gguf --tokens 1,2,3
try -o x.txt
ls
