# Path patching in one command: its files, in parts, by two threads, and what is refused.
clean='The river runs past the city, and people swim in the'
corrupt='The church runs past the city, and people swim in the'
patch="qkv patch -q --clean '$clean' --corrupt '$corrupt' --metric 'logit_diff: river/ church' --receiver q@5.h1 --receiver v@5.h3"
run() { eval "$patch" '"$@"'; }
run -t 1 --top 4 -o paths.csv -o paths.svg -o paths.html -o whole.sqlite
grep -q 's Head' paths.html || echo 'no axis'
qkv reproduce paths.svg --check
for i in 1 2; do run --shard $i/2 -t 1 -o part$i.sqlite >/dev/null; done
qkv sweep merge -o merged.sqlite part1.sqlite part2.sqlite 2>/dev/null
run -t 2 -o two.sqlite >/dev/null
for f in whole merged two; do
    qkv sweep export $f.sqlite -o $f.rows.csv 2>/dev/null
    cmp whole.rows.csv $f.rows.csv
done
wc -l <whole.rows.csv
qkv patch --clean "$clean" --corrupt "$corrupt" --metric kl --receiver q@5.h1 --explain
# To the logits; feed-forward blocks frozen, too, also where they read what attention reads.
qkv patch -q -t 1 --clean "$clean" --corrupt "$corrupt" --metric 'logit_diff: river/ church' --receiver logits --top 2
qkv patch -q -t 1 --clean "$clean" --corrupt "$corrupt" --metric 'logprob: river bank' --receiver logits --freeze-mlps \
    --direction denoise --top 2
echo '{"clean": [5, 6, 7, 8], "corrupt": [5, 9, 7, 8], "metrics": "kl", "receivers": ["q@1.h0", "v@1.h1"],
 "freeze_mlps": true}' >ids.json
qkv sweep -q -t 1 -m "$VECTORS/gpt_neox/model.gguf" ids.json -o ids.sqlite && echo computed
try() { qkv patch -t 1 --clean "$clean" --corrupt "$corrupt" --metric kl "$@" -o none.sqlite -o none.png || echo "exit $?" >&2; }
try --receiver z@3.h1
try --receiver q@0.h1
try --receiver q@5.h1 --layers 4-5
try --receiver q@5.h1 --receiver q@5
try --receiver q@5.h1 --site resid_pre
try --receiver q@5.h1 --by position
try --receiver logits --receiver q@5.h1
try --freeze-mlps
ls none.* 2>/dev/null
true
