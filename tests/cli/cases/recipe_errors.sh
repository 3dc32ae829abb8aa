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
