qkv run --tokens 5,6 --variant 'q@0.h0=scale:0.5' --capture pattern@0.h0 --capture logits -o out.safetensors
od -An -tu8 -N8 out.safetensors >length
length=$(tr -d ' ' <length)
echo $(((8 + length) % 8))
head -c $((8 + length)) out.safetensors | tail -c +9 | sed 's/ *$//'
echo
