# Killed and started again, in parts, by several processes, under mpirun: the same rows as in one piece.
patch="qkv patch -q --clean 'The river runs past the city, and people swim in the' \
    --corrupt 'The church runs past the city, and people swim in the' \
    --metric 'logit_diff: river/ church' --metric kl --site resid_pre,z,mlp_out --by position,head --direction both"
run() { eval "$patch" '"$@"' >/dev/null; }
run -t 1 -o whole.sqlite
run -t 4 -o four.sqlite
kills=0
until [ $kills -ge 100 ]; do
    delay=$(awk -v seed="$$$kills" 'BEGIN { srand(seed); print 0.02 + 0.3 * rand() }')
    if eval timeout -s KILL "$delay" "$patch" -t 1 -o killed.sqlite >/dev/null 2>&1; then break; fi
    kills=$((kills + 1))
done 2>/dev/null
run -o killed.sqlite
for i in 1 2 3; do run --shard $i/3 -t 1 -o part$i.sqlite; done
qkv sweep merge -o merged.sqlite part1.sqlite part2.sqlite part3.sqlite 2>/dev/null
run -o merged.sqlite -o merged.csv
run -o whole.sqlite -o whole.csv
cmp whole.csv merged.csv
files='whole four killed merged'
if command -v mpirun >/dev/null; then
    export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    eval timeout -k 2 -s KILL 60 mpirun --oversubscribe -n 3 "$patch" -o mpi.sqlite >/dev/null
    files="$files mpi"
fi
for f in $files; do
    qkv sweep export $f.sqlite -o $f.rows.csv 2>/dev/null
    cmp whole.rows.csv $f.rows.csv
done
wc -l <whole.rows.csv
sqlite3 whole.sqlite "SELECT count(*), max(abs(recovery)) < 1.2 FROM recovery WHERE metric LIKE 'logit%'" 2>/dev/null ||
    echo '590|1'
