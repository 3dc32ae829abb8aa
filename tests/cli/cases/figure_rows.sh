# One query in all layers: a row per layer, or per head of a layer.
qkv figure rows --tokens 5,6,7,8 --tokens 9,8,7 --variant 'q@1=zero' --baseline -o rows.png -o rows.svg --data rows.safetensors
length=$(od -An -tu8 -N8 rows.safetensors | tr -d ' ')
head -c $((8 + length)) rows.safetensors | grep -ao '"r[0-9].c[0-9]":{[^}]*}' | sed 's/,"data_offsets.*//'
qkv figure rows --layer 3 --query 2 --tokens 5,6,7,8 --data heads.safetensors
qkv run --tokens 5,6,7,8 --capture 'pattern@3.h3' -o head.npy
tail -c 16 heads.safetensors >a
tail -c 32 head.npy | head -c 16 >b
cmp a b && echo same
