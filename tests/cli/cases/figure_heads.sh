# Small maps: their numbers are those of captures, pooled ones those of pattern:max.
same() { # FIGURE.safetensors RUN.npy: the last map
    python3 - "$@" <<'PY'
import sys
from tensors import npy, safetensors
_, maps = safetensors(sys.argv[1])
shape, values = list(maps.values())[-1]
print(shape, (shape, values) == (npy(sys.argv[2])[0][-2:], npy(sys.argv[2])[1]))
PY
}
qkv figure heads --tokens 5,6,7,8 -o heads.png -o heads.svg -o heads.pdf --data heads.safetensors
qkv run --tokens 5,6,7,8 --capture 'pattern@5.h3' -o last.npy
same heads.safetensors last.npy
ids=$(seq -s, 5 124)
qkv figure heads --layers 0-1 --tokens "$ids" --data long.safetensors -o long.svg
qkv run --tokens "$ids" --capture 'pattern@1.h3:max=220' -o long.npy
same long.safetensors long.npy
grep -c '<image' long.svg
# Smaller maps are pooled, and what is masked stays so.
qkv figure heads --layers 0-1 --panel-size 34 --tokens "$ids" --data small.safetensors --text text -o small.svg
qkv run --tokens "$ids" --capture 'pattern@1.h3:max=68' -o small.npy
same small.safetensors small.npy
sed 's/<[^>]*>//g' small.svg | tr -s ' \n' ' ' | grep -o 'maps of 68 .* white'
qkv figure heads --layer 2 --variant 'v@0=zero' --diff --tokens 5,6,7 --data d.safetensors
python3 - <<'PY'
from tensors import safetensors
metadata, maps = safetensors("d.safetensors")
for name in maps:
    print(name, metadata[name + ".title"], "|", metadata[name + ".edits"])
PY
