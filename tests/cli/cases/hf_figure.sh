cp -r "$VECTORS/gpt2/hf" model
chmod -R u+w model
rm model/tokenizer.json # token ids take the place of words
qkv figure modify -m model --tokens 1,20,30,40,50 --layer 1 --head 2 -o a.svg --data a.safetensors
qkv figure modify -m "$VECTORS/gpt2/model.gguf" --tokens 1,20,30,40,50 --layer 1 --head 2 -o b.svg --data b.safetensors
# The same weights in both formats: the same numbers, after the header that names the model.
tail -c 900 a.safetensors >a && tail -c 900 b.safetensors >b && cmp a b
grep -c '<svg' a.svg
