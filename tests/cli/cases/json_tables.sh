# --json wherever a table is printed; lists are lists.
show() {
    "$@" | python3 -c '
import json, sys
def shape(x):
    if isinstance(x, dict): return {k: shape(v) for k, v in x.items()}
    if isinstance(x, list): return [shape(x[0]), len(x)] if x else []
    return type(x).__name__
print(json.dumps(shape(json.load(sys.stdin))))'
}
prompt='A quiet street.'
show qkv run -p "$prompt" --capture pattern@0 --variant 'q@0=zero' --json
show qkv run -p "$prompt" --capture logits -o a.npz --json
show qkv measure -p "$prompt" --metrics sink,loss --variant 'q@0=zero' --json
show qkv measure -p A --metrics sink,entropy --json
show qkv sweep -p "$prompt" --epsilon 1 --explain --json -q
show qkv sweep -p "$prompt" --epsilon 1 --json -q -o r.sqlite
show qkv recipe --json
echo '{"title": "A study", "sweep": {"targets": "q", "epsilon": "0.5,1", "layers": "0", "metrics": "tv"},
  "tables": [{"title": "Change", "metric": "tv", "rows": "setting", "columns": "head"}]}' >study.json
show qkv recipe study.json --json -p "$prompt"
show qkv metrics massive --json
show qkv tokens "$prompt" --json
show qkv tokens -p A -p B --json
show qkv pull tinyllama --dry-run --json -q
try() {
    "$@" || echo "exit $?" >&2
}
try qkv run -p A --explain --json
try qkv recipe gu-sink --print --json
try qkv pull tinyllama --json
