# A sweep as a study: its tables, charts, results that are kept and shared, and what it refuses.
p='The river runs past the old mill.'
qkv effects -p "$p" --layers 1-2 --heads 0 --targets none,q --epsilon 0.5,0.01 --metrics sink,tv --top 2 \
    -o sink.png:sink -o tv.svg:tv -o means.csv -o all.html -o r.sqlite -t 1 2>/dev/null
cut -d, -f 1-6 means.csv
qkv reproduce sink.png --check
# The same cells as 'qkv sweep' has, which resumes from them.
qkv sweep -p "$p" --layers 1-2 --heads 0 --targets none,q --epsilon 0.5,0.01 --metrics sink,tv -o r.sqlite -t 1 2>&1 | sed 's/ in .*//' >&2
# Shards of it are merged and drawn.
for i in 1 2; do
    qkv effects -p "$p" --layers 0-1 --targets z --ops zero --at output --metrics output_kl --shard $i/2 -o part$i.sqlite -q
done
qkv sweep merge -o whole.sqlite part1.sqlite part2.sqlite
qkv effects -p "$p" --layers 0-1 --targets z --ops zero --at output --metrics output_kl --chart ranking --top 3 \
    -o whole.sqlite -o ranking.pdf -q
try() { qkv effects "$@" >/dev/null || echo "exit $?" >&2; }
try
try -p "$p" --epsilon 1 --change -o a.png
try -p "$p" --targets Q
try -p "$p" --chart lines --ops zero --targets z -o a.png
try -p "$p" --epsilon 0.5,0.1 --chart heatmap -o a.png
try -p "$p" --chart heatmap --epsilon 0.5 --order smallest -o a.png
echo '{"pairs": []}' >pairs.json
try --spec pairs.json
echo '{"sweep": 5}' >five.json
try --spec five.json
qkv recipe gu-sink --resume r.sqlite || echo "exit $?" >&2
ls
