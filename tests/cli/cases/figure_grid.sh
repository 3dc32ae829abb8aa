qkv figure grid --layer 0 --head 1 --tokens 5,6,7 --row 'Top=' --row 'Value=v@{layer}=zero' \
    --col 'Plain=' --col 'Half=q@{layer}.h{head}=scale:0.5' -o grid.svg --data grid.safetensors
length=$(od -An -tu8 -N8 grid.safetensors | tr -d ' ')
head -c $((8 + length)) grid.safetensors | grep -ao '"r[0-9].c[0-9].[a-z]*":"[^"]*"'
