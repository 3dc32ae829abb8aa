try() { qkv generate "$@" >out; echo "exit $?, $(wc -c <out) bytes" >&2; }
try
try -p ''
try -p 'The river' --temperature -1
try -p 'The river' --temperature 0 --seed 3
try -p 'The river' --top-p 2
try -p 'The river' --top-p 0
try -p 'The river' --stop ''
try -p 'The river' --stop 'a\x00b'
try -p 'The river' -n 100000
try -p 'The river' --context-shift
try -p 'The river' --edit-tokens new
try -p 'The river' --variant 'v@0=mean:token'
try -p 'The river' --variant 'pattern@0=add:0.1'
try -p 'The river' -n 4 --variant 'v@0[99]=zero'
try -p 'The river' --variant 'v@0[0]=zero' --edit-tokens new
try -p 'The river' --variant 'v@0=patch:a' --source 'a=The river'
try -p 'The river' --variant 'resid_pre@0[-1]=set:1e30'
try -p 'The river' --explain --json
try -p 'The river' -o out.npy
try -p 'The river' -o out.txt
try -p 'The river' --capture pattern --variant 'q@0=zero' --variant 'q@1=zero' -o out.npz
try -p 'The river' -o - --json
try -p 'The river' -o out.jsonl --format jsonl
try -p 'The river' -o - --format npz
try -p 'The river' -o - --format txt
# All prompts are looked at before the first one is continued, and captures too.
{ echo 'The river'; for i in $(seq 300); do printf 'river '; done; echo; } >two.txt
try -f two.txt -n 4
try -p 'The river' -n 4 --capture weather -o out.safetensors
