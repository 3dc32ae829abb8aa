# What an option changes in a figure, as its recipe tells. After a semicolon: what of the page becomes less.
cat >changes.py <<'PY'
import json, re, shlex, subprocess, sys


def draw(kind, *words):
    where = ["--layer", "0", "--head", "0", "--tokens", "5,6,7,8,9"]
    subprocess.run(["qkv", "figure", kind, *where, *words, "-o", "a.svg"], check=True)
    told = json.loads(subprocess.run(["qkv", "recipe", "extract", "a.svg"], capture_output=True, check=True).stdout)
    svg = open("a.svg").read()
    width, height = map(int, re.search(r'viewBox="0 0 (\d+) (\d+)"', svg).groups())
    facts = {**told["options"], **told["look"], **told["drawn"], "range": told["range"]}
    facts["edits"] = [p["edits"] for p in told["panels"]]
    return facts, {"width": width, "height": height, "letters": svg.count("<use")}


def compare(kind, *words, less):
    facts, page = draw(kind, *words)
    print(kind, shlex.join(words))
    changed = {k: v for k, v in facts.items() if plain[kind][0].get(k) != v}
    text = json.dumps(changed, sort_keys=True)
    print("   ", re.sub(r"[0-9.]{6,}(e-[0-9]+)?", lambda number: f"{float(number[0]):.3g}", text))
    for name in less:
        if not page[name] < plain[kind][1][name]: print("    not less", name)


plain = {kind: draw(kind) for kind in ("modify", "mean")}
for line in sys.stdin:
    words, _, less = line.rstrip("\n").partition(";")
    compare(*words.split("|"), less=less.split())
PY
python3 changes.py <<'END'
modify|--labels|index
modify|--labels|none|--no-axis-labels;width height letters
modify|--values|always
modify|--values|never;letters
modify|--baseline
modify|--diff
modify|--diff|--scale|power|--gamma|0.3
modify|--scale|log
modify|--skip-keys|4|--scale|log
modify|--diff|--range|-0.5,0.5
modify|--title|A *title*
modify|--title|;height letters
modify|--panel-size|60;width height
modify|--edit-heads|all
modify|--eps|1,0.5,0.25,0.125,0
mean|--baseline
mean|--diff|--edit-heads|all
END
# Pixels are as many as the resolution says, and one token is enough.
qkv figure modify --layer 0 --head 0 --tokens 5 -o one.svg -o one.png --dpi 144
python3 - <<'PY'
import re, struct
width, height = map(int, re.search(r'viewBox="0 0 (\d+) (\d+)"', open("one.svg").read()).groups())
pixels = struct.unpack(">II", open("one.png", "rb").read(24)[16:])
print(all(abs(p - 2 * points) <= 2 for p, points in zip(pixels, (width, height))))
PY
