# Two types of one shape, kept for the next time; every sample.
qkv-bench --shape gpt2:2,4,4,32,64,100 --type f32 --type q8_0 --keep models -T 8 -t 1 --repeats 3 --only trunk,grid --json 2>&1
ls models
qkv-bench --shape gpt2:2,4,4,32,64,100 --type q8_0 --keep models -T 8 -t 1 --repeats 1 --only load >/dev/null
