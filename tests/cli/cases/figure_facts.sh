# Five facts about scaled queries, keys and values, from the numbers behind the figure.
qkv figure modify --layer 1 --head 1 --tokens 5,6,7,8 --eps 1e-10,5e-1 --data d.safetensors
tail -c 384 d.safetensors >all
for i in 0 1 2 3 4 5; do dd if=all bs=64 skip=$i count=1 of=p$i 2>/dev/null; done
echo 'query, saturated:'
od -An -v -tf4 p0 | awk '{ printf "%.4f %.4f %.4f %.4f\n", $1, $2, $3, $4 }'
echo 'key, saturated:'
od -An -v -tf4 p2 | awk '{ printf "%.4f %.4f %.4f %.4f\n", $1, $2, $3, $4 }'
echo 'query and key agree:'
{ od -An -v -w4 -tf4 p1; od -An -v -w4 -tf4 p3; } |
    awk '{ x[NR] = $1 } END { for (i = 1; i <= 16; i++) { d = x[i] - x[i + 16]; if (d * d > 1e-10) bad++ } print 0 + bad }'
echo 'value panels are bit-identical to the unmodified pattern:'
qkv run --tokens 5,6,7,8 --capture pattern@1.h1 -o plain.npy
tail -c 64 plain.npy >plain
cmp p4 p5 && cmp p4 plain && echo yes
