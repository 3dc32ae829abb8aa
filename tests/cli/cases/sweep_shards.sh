# Parts, one of them killed and done again, joined: the same rows as in one piece.
printf '%s\n' 'The river runs to the sea.' 'A cat sat on the wall.' 'It rained all day.' \
    'The train was late.' >prompts
sweep="qkv sweep -f prompts --epsilon 0.5,1e-3 --ops scale,mean:head"
$sweep -o whole.sqlite 2>/dev/null
$sweep --shard 1/3 -o 1.sqlite 2>/dev/null
$sweep --shard 2/3 -o 2.sqlite 2>/dev/null
timeout -s KILL 0.1 $sweep --shard 3/3 -o 3.sqlite 2>/dev/null
qkv sweep merge -o all.sqlite 1.sqlite 2.sqlite
qkv sweep merge --partial -o part.sqlite 1.sqlite 2.sqlite
$sweep --shard 3/3 -o 3.sqlite 2>/dev/null
$sweep --shard 2/3 -o 3.sqlite 2>stderr
tail -n 1 stderr >&2
# Nothing is left to do, or nothing falls to this part: the numbers are those of the shard.
$sweep --shard 3/3 -o 3.sqlite 2>&1 | sed 's/ in .*//' >&2
qkv sweep -p other --ops zero --layers 0 --shard 2/2 -o empty.sqlite 2>&1 | sed 's/ in .*//' >&2
rm empty.sqlite
qkv sweep merge -o all.sqlite 1.sqlite 2.sqlite 3.sqlite
$sweep -o part.sqlite 2>/dev/null
qkv sweep --shard 1/3 -p other --epsilon 0.5 -o other.sqlite 2>/dev/null
qkv sweep merge -o none.sqlite 1.sqlite other.sqlite
ls
for f in whole all part; do qkv sweep export $f.sqlite -o $f.csv; done
cmp whole.csv all.csv && cmp whole.csv part.csv && wc -l <all.csv
