qkv run --tokens 5,6 --variant 'q@0=zero' --capture pattern@0 -o out.npy
status=$?
ls
exit $status
