qkv figure mean --layer 0 --head 0 --tokens 5,6 --tokens 5,6,7 --skip-keys 1 --baseline --data d.safetensors
python3 -c 'from tensors import header; print(header("d.safetensors")[0].rstrip())'
# -o writes numbers and reports, too; --json prints the tables.
qkv figure modify --layer 0 --head 0 --tokens 5,6,7 --data numbers.csv
qkv figure modify --layer 0 --head 0 --tokens 5,6,7 -o same.csv -o report.md -o report.json
cmp numbers.csv same.csv && head -1 report.md
qkv figure modify --layer 0 --head 0 --tokens 5,6,7 --json >printed.json
python3 -c 'import json
for name in ("report.json", "printed.json"): print(sorted(json.load(open(name)))[:4])'
