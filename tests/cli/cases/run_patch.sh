# Values of another prompt: patched with itself nothing changes, with another one something does.
qkv run --tokens 5,6,7 --source-tokens other=9,10,11 \
    --variant 'q@1=patch:other' --capture pattern@1
printf 'river' >other.txt
qkv run -p 'water' --source 'a=water' --variant 'q@1=patch:a' --capture logits -o out.safetensors
ls *.safetensors
