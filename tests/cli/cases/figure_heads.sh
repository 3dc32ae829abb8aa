# Small maps: their numbers are those of captures, pooled ones those of pattern:max.
same() {
    tail -c "$3" "$1" >a
    tail -c "$3" "$2" >b
    cmp a b && echo same
}
qkv figure heads --tokens 5,6,7,8 -o heads.png -o heads.svg -o heads.pdf --data heads.safetensors
qkv run --tokens 5,6,7,8 --capture 'pattern@5.h3' -o last.npy
same heads.safetensors last.npy 64
ids=$(seq -s, 5 124)
qkv figure heads --layers 0-1 --tokens "$ids" --data long.safetensors -o long.svg
qkv run --tokens "$ids" --capture 'pattern@1.h3:max=220' -o long.npy
same long.safetensors long.npy 57600
grep -c '<image' long.svg
# Smaller maps are pooled, and what is masked stays so.
qkv figure heads --layers 0-1 --panel-size 34 --tokens "$ids" --data small.safetensors --text text -o small.svg
qkv run --tokens "$ids" --capture 'pattern@1.h3:max=68' -o small.npy
same small.safetensors small.npy 18496
sed 's/<[^>]*>//g' small.svg | tr -s ' \n' ' ' | grep -o 'maps of 68 .* white'
qkv figure heads --layer 2 --variant 'v@0=zero' --diff --tokens 5,6,7 --data d.safetensors
length=$(od -An -tu8 -N8 d.safetensors | tr -d ' ')
head -c $((8 + length)) d.safetensors | grep -ao '"r[0-9].c[0-9].[a-z]*":"[^"]*"'
