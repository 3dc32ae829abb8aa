# Any number of processes finishes, and gives the same rows: also more than there are blocks, more
# than are still missing, and one cell.
check() { # FILE OF-THE-SAME-SWEEP: complete, with the same rows
    qkv sweep export "$1" -o rows.csv && cmp rows.csv "$2"
}
sweep="qkv sweep -p Hello,world. --epsilon 0.5,1e-3 --metrics sink,tv"
$sweep -t 1 -o one.sqlite 2>/dev/null && qkv sweep export one.sqlite -o one.csv
for t in 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
    timeout 120 $sweep -t $t -o $t.sqlite 2>stderr || cat stderr
    check $t.sqlite one.csv
done
cell="qkv sweep -p Hello,world. --layers 3 --heads 1 --targets q --epsilon 0.5 --metrics tv"
$cell -t 1 -o cell.sqlite 2>/dev/null && qkv sweep export cell.sqlite -o cell.csv
timeout 120 $cell -t 16 -o cell16.sqlite 2>stderr || cat stderr
check cell16.sqlite cell.csv
# Three blocks of many are missing.
shards="$sweep --shard"
for i in 1 2 3 4; do
    $shards $i/5 -t 4 -o part$i.sqlite 2>stderr || cat stderr
done
qkv sweep merge --partial -o rest.sqlite part?.sqlite 2>/dev/null
timeout 120 $sweep -t 16 -o rest.sqlite 2>stderr || cat stderr
check rest.sqlite one.csv
# A recipe shares its work in the same way.
for t in 1 4; do
    timeout 120 qkv recipe mean-ablation -p Hello,world. -t $t >recipe$t 2>stderr || cat stderr
done
cmp recipe1 recipe4
wc -l <one.csv
