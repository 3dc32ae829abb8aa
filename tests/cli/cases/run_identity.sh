# An edit that changes nothing is said to.
qkv run --tokens 5,6,7 --variant 'q@0.h0=scale:1' --capture pattern@0 -o out.safetensors
ls
