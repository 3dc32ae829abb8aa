for capture in 'weather' 'pattern@99' 'pattern@0.h99' ''; do
    qkv run --tokens 5,6 --capture "$capture" -o out.npy
    echo "exit $?" >&2
done
ls
