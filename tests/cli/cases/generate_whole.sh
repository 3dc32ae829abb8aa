# Prompt and generated text, looked at as a whole: figures, which can be made again; measures; captures.
qkv figure modify -p 'The river runs' --layer 3 --head 1 --generate 6 -o modify.png --report modify.json
qkv reproduce modify.png --check
qkv generate -p 'The river runs' -n 6 -o text.jsonl >/dev/null
python3 - <<'PY'
import json
text = json.loads(open("text.jsonl").readline())
prompt = json.load(open("modify.json"))["recipe"]["inputs"][0]
print(prompt["tokens"] == text["prompt_ids"] + text["ids"], prompt["text"] == text["prompt"] + text["text"])
PY
qkv figure mean --layer 3 --head 1 --generate 2 -o mean.svg
qkv reproduce mean.svg --check
qkv figure grid -p 'The river runs' --source 'a=The water runs' --row 'All=v@2=patch:a' --layer 3 --head 1 --generate 3 \
    -o grid.pdf
qkv reproduce grid.pdf --check
qkv measure -p 'The river runs' -p 'The mill stands' --generate 4 --source 'a=The water runs' --variant 'v@2=patch:a' \
    --metrics loss -o -
qkv measure -p 'The river runs' --generate 100000
qkv generate -p 'The river runs' -n 3 --variant 'v@2[:2]=patch:a' --source 'a=The water runs' --capture resid_post@4 \
    -o out.safetensors >/dev/null
qkv show out.safetensors | grep -c 'source.a .*\[.*\]'
qkv show out.safetensors | grep 'F32'
qkv generate -p 'The river runs' -n 6 -o - | cmp - text.jsonl && echo same
qkv generate -p 'The river runs' -n 3 --capture pattern@0.h1:first -o out.npz -o - --format json | grep -c '"v0/pattern.0'
ls out.npz
qkv figure rows -p 'The river runs' --generate 3 -o rows.svg && qkv reproduce rows.svg --check
qkv figure heads -p 'The river runs' --generate 3 -o heads.svg && qkv reproduce heads.svg --check
qkv figure grid -p 'The river' -p 'The mill' --source 'a=The water' --row 'All=v@2=patch:a' --generate 3 -o grid.svg
