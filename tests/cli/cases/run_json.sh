qkv run --tokens 5,6 --capture pattern@0.h0 -o out.json
cat out.json
