# Without --capture: the pattern of every layer.
qkv run --tokens 5,6 -o all.safetensors
qkv run --tokens 5,6 --capture 'pattern@*' -o stars.safetensors
for file in all stars; do
    length=$(od -An -tu8 -N8 $file.safetensors | tr -d ' ')
    tail -c +$((9 + length)) $file.safetensors >$file
done
cmp all stars && wc -c <all
