qkv run --tokens 5,6 --capture pattern@0.h0 -o a.safetensors -ob.npy --output=c.json
ls
