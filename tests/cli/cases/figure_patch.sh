# A grid takes values from another prompt; the recipe says which.
qkv figure grid --layer 1 --head 0 --tokens 5,6,7 --col 'Plain=' --col 'Patched=q@{layer}=patch:a' \
    --col 'Same=q@{layer}=patch:b' --row 'A=' --row 'Value=v@{layer}=zero' \
    --source-tokens a=8,9,10 --source-tokens b=5,6,7 -o out.svg --data out.safetensors
grep -ao '"sources":\[[^}]*}[^}]*}]' out.svg
tail -c 216 out.safetensors >all
for i in 0 1 2; do dd if=all bs=36 skip=$i count=1 of=p$i 2>/dev/null; done
cmp -s p0 p1 || echo different
cmp p0 p2 && echo same
