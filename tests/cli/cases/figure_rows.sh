# One query in all layers: a row per layer, or per head of a layer.
qkv figure rows --tokens 5,6,7,8 --tokens 9,8,7 --variant 'q@1=zero' --baseline -o rows.png -o rows.svg --data rows.safetensors
qkv figure rows --layer 3 --query 2 --tokens 5,6,7,8 --data heads.safetensors
qkv run --tokens 5,6,7,8 --capture 'pattern@3.h3' -o head.npy
python3 - <<'PY'
from tensors import npy, safetensors
for name, (shape, _) in safetensors("rows.safetensors")[1].items():
    print(name, shape)
_, maps = safetensors("heads.safetensors")
_, rows = list(maps.values())[-1]
print("the last head's row", rows[-4:] == npy("head.npy")[1][8:12])
PY
