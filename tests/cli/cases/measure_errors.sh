# Mistakes show before anything is computed, and nothing is left behind.
try() {
    qkv measure "$@" -o out.csv
    echo "exit $?" >&2
    ls >&2
}
try --metrics sink,nothing
try --metrics all,nothing
try --metrics all,sink
try --metrics sink:x
try --layers 99
try --heads 1,99
try --variant 'q@99=zero'
try -p 'A text.' --tokens 1,999999
try -f missing.txt
qkv measure -o out.txt
echo "exit $?" >&2
qkv measure -o missing/out.csv
echo "exit $?" >&2
qkv measure --layers 2 --metrics loss
qkv measure --heads 2 --metrics massive
qkv measure -m "$VECTORS/bert/model.gguf" --metrics all
