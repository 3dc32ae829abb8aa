qkv run --tokens 5,6 --variant 'q@0.h0=scale:0.5' --capture pattern@0.h0 --capture logits -o out.safetensors
python3 - <<'PY'
from tensors import header
text, _ = header("out.safetensors")
print(len(text) % 8)
print(text.rstrip())
PY
