# Figures of several heads, layers and prompts are made again from their recipes, too.
qkv figure heads --tokens 5,6,7,8 --layers 1-3 --variant 'v@1=zero' --diff -o heads.svg --data heads.safetensors
qkv figure heads --tokens "$(seq -s, 5 104)" --layer 2 --panel-size 40 -o pooled.png
qkv figure rows --tokens 5,6,7,8 --tokens 9,8,7 --query 2 --layer 2 --variant 'k@1=zero' --baseline -o rows.png
qkv figure rows --tokens 5,6,7,8 --head 1 -o layers.pdf
qkv figure grid --tokens 5,6,7 --tokens 8,9 --layer 1 --head 0 --row 'A=q@{layer}=zero' --baseline -o grid.pdf \
    --report grid.html
qkv figure grid --tokens 5,6,7 --tokens 8,9 --layer 1 --head 0 -o plain.svg
for file in heads.svg heads.safetensors pooled.png rows.png layers.pdf grid.pdf grid.html plain.svg; do
    qkv reproduce $file --check -o "again-$file"
    cmp $file "again-$file"
done
# What was changed is told.
sed 's/"variant":"v@1=zero"/"variant":"v@0=zero"/' heads.svg >changed.svg
qkv reproduce changed.svg --check 2>&1 | sed 's/[0-9a-f]\{8\}/ID/g'
