# Without the first keys, colours end at the largest weight that is shown.
qkv figure modify --layer 1 --head 1 --tokens 5,6,7,8 --skip-keys 1 -o out.svg --data out.safetensors
python3 - <<'PY'
import re
from tensors import safetensors
_, maps = safetensors("out.safetensors")
largest = max(max(values) for _, values in maps.values())
shown = float(re.search(r'"head":1,"range":\[0,([^]]*)\]', open("out.svg").read())[1])
print("colours end at the largest weight", abs(shown - largest) < 1e-6 and largest < 0.99)
PY
qkv figure modify --layer 1 --head 1 --tokens 5,6,7,8 -o out.svg
grep -aoE '"head":[0-9]+,"range":[^]]*]' out.svg
qkv figure modify --layer 1 --head 1 --tokens 5,6,7,8 --skip-keys 1 --range 0,0.5 -o out.svg
grep -aoE '"head":[0-9]+,"range":[^]]*]' out.svg
