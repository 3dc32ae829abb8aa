# A grid takes values from another prompt; the recipe says which.
qkv figure grid --layer 1 --head 0 --tokens 5,6,7 --col 'Plain=' --col 'Patched=q@{layer}=patch:a' \
    --col 'Same=q@{layer}=patch:b' --row 'A=' --row 'Value=v@{layer}=zero' \
    --source-tokens a=8,9,10 --source-tokens b=5,6,7 -o out.svg --data out.safetensors
grep -ao '"inputs":\[[^]]*\][^]]*\][^]]*\][^]]*\]' out.svg
python3 - <<'PY'
from tensors import safetensors
_, maps = safetensors("out.safetensors")
print("patched differs", maps["r0.c1"] != maps["r0.c0"])
print("patched with itself is the same", maps["r0.c2"] == maps["r0.c0"])
PY
