# Killed at random moments and started again until it is done: the same rows as in one piece.
i=0
while [ $i -lt 8 ]; do
    echo "On day $i the boat left the harbour at noon and came back before the rain began."
    i=$((i + 1))
done >prompts
sweep="qkv sweep -f prompts --epsilon logspace:1e-6,1,7 --metrics sink,tv,js"
$sweep -t 1 -o whole.sqlite 2>/dev/null
kills=0
until [ $kills -ge 300 ]; do
    delay=$(awk -v seed="$$$kills" 'BEGIN { srand(seed); print 0.03 + 0.25 * rand() }')
    if timeout -s KILL "$delay" $sweep -o killed.sqlite 2>/dev/null; then break; fi
    kills=$((kills + 1))
done 2>/dev/null
# A machine too busy to get anything done in that time.
$sweep -o killed.sqlite 2>/dev/null
ls
qkv sweep export whole.sqlite -o whole.csv
qkv sweep export killed.sqlite -o killed.csv
cmp whole.csv killed.csv && wc -l <killed.csv
