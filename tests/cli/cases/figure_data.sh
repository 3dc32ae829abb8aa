qkv figure mean --layer 0 --head 0 --tokens 5,6 --tokens 5,6,7 --skip-keys 1 --baseline --data d.safetensors
length=$(od -An -tu8 -N8 d.safetensors | tr -d ' ')
head -c $((8 + length)) d.safetensors | tail -c +9 | sed 's/ *$//'
echo
