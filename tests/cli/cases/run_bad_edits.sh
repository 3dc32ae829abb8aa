for edits in 'q@0' 'w@0=zero' 'q@99=zero' 'q@0.h99=zero' 'q@0=half' 'q@0=scale:nan' \
    'q@0[9]=zero' 'q@0=zero + q@0=zero' 'q@0=patch:none' ''; do
    qkv run --tokens 5,6 --variant "$edits" --capture pattern@0 -o out.npy
    echo "exit $?" >&2
done
ls
