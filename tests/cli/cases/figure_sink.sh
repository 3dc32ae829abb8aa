# The share of a learned sink as a first column, as numbers and as its label; and where there is none.
qkv figure modify -m "$VECTORS/gpt_oss/model.gguf" -p "a map" --layer 0 --head 1 --sink-column -o f.svg --data d.safetensors
head -c 8000 d.safetensors | grep -ao '"shape": *\[[0-9, ]*\]' | sort -u
qkv figure modify --sink-column -o g.svg
qkv figure grid -m "$VECTORS/gpt_oss/model.gguf" --row Q=q@0=zero --col K=q@1=zero --show scores --sink-column -o g.svg
qkv run -p "a map" --capture pattern@0:sink
ls
