# Mistakes show before anything is computed, and name what is wrong.
try() { qkv sweep -p 'one two' "$@" || echo "exit $?" >&2; }
try
try --epsilon 1 --explain -o x.sqlite
try --epsilon 1 -o x.csv
try --epsilon 1 --layers 7 --explain
try --epsilon 1 --heads 0-4 --explain
try --epsilon 1 --targets resid_pre --explain
try --ops turn --explain
try --epsilon none --explain
try --epsilon 1 --metrics nothing --explain
try --epsilon 1 --metrics subspace_angle --explain
try --epsilon 1 --shard 0/2 -o x.sqlite
try --epsilon 1 -o nowhere/x.sqlite 2>&1 | grep -v cells >&2
echo '{"epsilon": 1, "head": 2}' >spec.json
try spec.json --explain
echo '{"epsilon": 1' >spec.json
try spec.json --explain
echo text >x.sqlite
try --epsilon 1 -o x.sqlite 2>&1 | grep -v cells >&2
qkv sweep export x.sqlite -o x.csv || echo "exit $?" >&2
qkv sweep export x.sqlite -o x.txt || echo "exit $?" >&2
qkv sweep merge -o y.json x.sqlite || echo "exit $?" >&2
qkv sweep merge x.sqlite || echo "exit $?" >&2
qkv sweep merge -o y.sqlite missing.sqlite || echo "exit $?" >&2
ls
