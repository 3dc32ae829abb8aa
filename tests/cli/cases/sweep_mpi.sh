# Several processes under mpirun, one of them killed: the same rows as one process gives.
# Open MPI leaks in modules that it has unloaded, which no suppression can name.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
command -v mpirun >/dev/null || { echo "there is no mpirun: scripts/setup.sh installs it"; exit 1; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
i=0
while [ $i -lt 12 ]; do
    echo "On day $i the boat left the harbour at noon and came back before the rain began."
    i=$((i + 1))
done >prompts
sweep="-f prompts --epsilon logspace:1e-6,1,7 --metrics sink,tv"
qkv sweep $sweep -o one.sqlite 2>/dev/null
run() { timeout -k 2 -s KILL 40 mpirun --oversubscribe "$@"; }
run -n 3 qkv sweep $sweep -o mpi.sqlite 2>stderr || cat stderr
# More processes than cells, and than are missing.
cell="-p Hello,world. --layers 3 --heads 1 --targets q --epsilon 0.5 --metrics tv"
qkv sweep $cell -o cell.sqlite 2>/dev/null && qkv sweep export cell.sqlite -o cell.csv
for i in 1 2; do
    run -n 4 qkv sweep $cell -o cells.sqlite 2>stderr || cat stderr
done
qkv sweep export cells.sqlite -o cells.csv && cmp cell.csv cells.csv && wc -l <cells.csv
# An estimate ends too: there is nothing for the others to wait for.
run -n 3 qkv sweep $sweep --explain 2>stderr || cat stderr
# The second process is killed, which ends them all; started again, they resume.
cat >rank.sh <<END
echo \$\$ >rank.\$OMPI_COMM_WORLD_RANK
exec qkv sweep $sweep -o killed.sqlite
END
run -n 3 sh rank.sh >/dev/null 2>&1 &
tries=0
until [ -s killed.sqlite ] || [ $tries = 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
kill -9 "$(cat rank.1)" 2>/dev/null
wait
run -n 2 qkv sweep $sweep -o killed.sqlite 2>stderr || cat stderr
ls ./*.sqlite*
for f in one mpi killed; do qkv sweep export $f.sqlite -o $f.csv; done
cmp one.csv mpi.csv && cmp one.csv killed.csv && wc -l <mpi.csv
