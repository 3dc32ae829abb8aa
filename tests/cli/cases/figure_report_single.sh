# One token has no column to look at: nothing is said of a sink.
qkv figure modify --tokens 5 -o out.png --report out.md 2>/dev/null
grep -c '| holds |' out.md
grep -c 'keeps the sink' out.md || true
