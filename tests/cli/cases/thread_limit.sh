# More threads than OpenMP may start would be waited for; all cores are as many as it may.
OMP_THREAD_LIMIT=1 qkv run -p one --capture pattern@0 -t 2 -o out.npy
echo "exit $?" >&2
OMP_THREAD_LIMIT=1 qkv run -p one --capture pattern@0 -o out.npy && ls
