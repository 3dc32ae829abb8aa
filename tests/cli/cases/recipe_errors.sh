# What a recipe may not be.
try() { qkv recipe "$@" || echo "exit $?" >&2; }
try nothing
try missing.json
echo '{"sweeps": {}}' >a.json
try a.json
echo '{"sweep": {}, "tables": [{"title": "t", "metric": "tv", "rows": "heads"}]}' >a.json
try a.json
echo '{"sweep": {}, "greedy": {"metric": "sink", "heads": 1, "candidates": 1}}' >a.json
try a.json
echo '{"sweep": {"epsilon": 1, "sites": "q"}}' >a.json
try a.json
echo '{"sweep": {"layers": 0, "ops": "zero"}, "tables": [{"title": "t", "metric": "far", "rows": "layer"}]}' >a.json
try a.json -p 'one two' 2>&1 | grep -v cells >&2
try --print
try gu-sink --print -o x.sqlite
try gu-sink -p Hi
try -p "A text." -o out.sqlite
# What greedy cannot work with is said before the sweep, not after it.
greedy='"greedy": {"metric": "output_kl", "heads": 1, "candidates": 2}'
for sweep in '"targets": "q,k", "ops": "zero"' '"targets": "z", "ops": "zero", "heads": "all"' \
    '"targets": "z", "ops": "zero", "metrics": "delta_loss"'; do
    echo "{\"sweep\": {$sweep, \"at\": \"output\"}, $greedy}" >a.json
    try a.json -p 'one two' -o never.sqlite
done
if [ -e never.sqlite ]; then echo "the sweep has begun" >&2; fi
