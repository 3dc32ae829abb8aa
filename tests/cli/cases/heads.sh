# What heads do, as tables and files; what cannot be.
qkv heads -o heads.png -o heads.svg -o heads.json
qkv heads -p 'The river runs to the sea.' --length 20 --sequences 1 --seed 3 --induction 0.9 --sink 0.2 --top 2
printf 'The dog met the cat, and the cat saw the\t dog\n\nThe river runs to the sea. It runs to the\t sea\n' >pairs.tsv
qkv heads --pairs pairs.tsv --name-mover 0.05 --top 1 -o names.csv --table heads | sed -n 1p
head -1 names.csv
wc -l <names.csv
# The same seed draws the same tokens, another one others.
for seed in 1 1 2; do qkv heads --seed $seed --table repeats -o - --format csv | cksum >>sums; done
uniq -c sums | sed 's/^ *\([0-9]*\).*/\1/'
# And again from its recipe.
qkv reproduce heads.png --check
for picture in labels scores; do qkv heads --picture $picture -o p.png >out; done
# Without a tokenizer: all tokens, and no BOS.
qkv heads -m "$VECTORS/llama/model.gguf" --tokens 5,6,7,8 --length 5 --sequences 1 --table repeats | wc -l
try() { qkv heads "$@" >out; echo "exit $?, $(wc -c <out) bytes" >&2; }
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
