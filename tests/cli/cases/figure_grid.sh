qkv figure grid --layer 0 --head 1 --tokens 5,6,7 --row 'Top=' --row 'Value=v@{layer}=zero' \
    --col 'Plain=' --col 'Half=q@{layer}.h{head}=scale:0.5' -o grid.svg --data grid.safetensors
python3 - <<'PY'
from tensors import safetensors
metadata, tensors = safetensors("grid.safetensors")
for name in tensors:
    print(name, metadata[name + ".title"], "|", metadata[name + ".edits"] or "no edit")
PY
