# Back to text; special tokens by their names, or without them.
ids=$(qkv tokens 'The river runs; "so" it does.' --json | tr -d '\n' | grep -o '"id": [0-9]*' | tr -dc '0-9\n' | paste -sd, -)
qkv tokens --ids "$ids"
qkv tokens --ids "$ids" --no-special
qkv tokens --ids 198,7,27 | od -c
qkv tokens --ids 400,20 --json
try() { qkv tokens "$@"; echo "exit $?" >&2; }
try --ids 1,4096
try --ids -1
try --ids 1,,2
try --ids ''
try --ids 1 text
try --ids 1 -p text
