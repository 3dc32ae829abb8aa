# Without --capture: the pattern of every layer.
qkv run --tokens 5,6 -o all.safetensors
qkv run --tokens 5,6 --capture 'pattern@*' -o stars.safetensors
python3 - <<'PY'
from tensors import safetensors
(_, all), (_, stars) = safetensors("all.safetensors"), safetensors("stars.safetensors")
print(all == stars, [f"{name} {shape}" for name, (shape, _) in all.items()])
PY
