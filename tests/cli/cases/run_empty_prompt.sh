qkv run -p '' --capture pattern@0
echo "exit $?" >&2
: >empty
qkv run -f empty --capture pattern@0
echo "exit $?" >&2
echo >newline
qkv run -f newline --capture pattern@0
