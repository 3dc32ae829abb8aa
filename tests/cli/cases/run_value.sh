# Values do not move the weights of their own layer, but they do move later ones.
qkv run --tokens 5,6,7,8 --variant 'v@0=zero' --capture pattern@0.h0 --capture pattern@1.h0 -o out.safetensors
tail -c 256 out.safetensors >values
head -c 64 values >v0_layer0
dd if=values bs=64 skip=1 count=1 of=v0_layer1 2>/dev/null
dd if=values bs=64 skip=2 count=1 of=v1_layer0 2>/dev/null
dd if=values bs=64 skip=3 count=1 of=v1_layer1 2>/dev/null
cmp v0_layer0 v1_layer0 && echo same
cmp -s v0_layer1 v1_layer1 || echo different
