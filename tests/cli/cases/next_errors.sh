try() { qkv next "$@" >out; echo "exit $?, $(wc -c <out) bytes" >&2; }
try
try -p ''
try -p "$(yes river | head -200 | tr '\n' ' ')"
cp "$VECTORS/bert/model.gguf" encoder.gguf
try -m encoder.gguf --tokens 1,2,3
try -p 'The river' --of ' Constantinople'
try -p 'The river' --of ' a,, the'
try -p 'The river' --diff ' a'
try -p 'The river' --diff ' a/ the/ of'
try -p 'The river' --at 3
try -p 'The river' --at -4
try -p 'The river' --top 0
try --tokens 5 --all
try -p 'The river' --all --at 1
try -p 'The river' --variant 'q@99=zero'
try -p 'The river' -p 'The sea was calm' --at 4
try -p 'The river' --variant 'q@0=zero' --variant 'logits=scale:1e38'
try -p 'The river' --variant 'resid_pre@1=set:1e30'
try -p 'The river' --variant 'v@0=patch:a' --source 'a=The'
try -p 'The river' -o out.txt
try -p 'The river' -o /nowhere/out.csv
try -p 'The river' --json -o -
try -p 'The river' -o out.png
try -p 'The river' --source 'a=The sea'
try -p 'The river' --answer ' wide
 sea'
try -p 'The river' --top 1 --at 0 --variant 'v@0[1]=zero' --variant 'q@0=scale:1'
