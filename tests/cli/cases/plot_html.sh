# Charts as pages: every metric of the sweep at every ε is inside, so that cells open.
look() {
    python3 - "$@" <<'PY'
import base64, json, math, re, struct, sys

text = open(sys.argv[1], encoding="utf-8").read()
data = json.loads(re.search(r'id="qkv-data">(.*?)</script>', text, re.S).group(1))["parts"][0]
numbers = lambda entry: list(struct.unpack("<%df" % (len(base64.b64decode(entry["data"])) // 4), base64.b64decode(entry["data"])))
L, H, E = len(data["layers"]), len(data["heads"]), len(data["epsilons"])
print(data["plot"], data["targets"], data["layers"], data["heads"], data["epsilons"], data["prompts"])
for metric in data["metrics"]:
    means, values = numbers(metric["means"]), metric["values"] and numbers(metric["values"])
    cells = len(data["targets"]) * E * L * H
    assert len(means) == cells
    wrong = 0
    for cell in range(cells):
        known = [values[p * cells + cell] for p in range(len(data["prompts"]))] if values else []
        known = [v for v in known if not math.isnan(v)]
        wrong += bool(known) and abs(sum(known) / len(known) - means[cell]) > 1e-6
    print(" ", metric["name"], "means of prompts" if values and not wrong else "means alone" if not wrong else "wrong")
# The values of the chart are among them.
first, off = numbers(data["metrics"][0]["means"]), 0
for value in data["values"]:
    if value["layer"] < 0 or value["head"] < 0:
        continue
    at = ((data["targets"].index(value["target"]) * E + data["epsilons"].index(value["epsilon"])) * L
          + data["layers"].index(value["layer"])) * H + data["heads"].index(value["head"])
    off += abs(first[at] - value["mean"]) > 1e-6
print("  %d values, %d of them others than the cells" % (len(data["values"]), off))
PY
}
"$MAKE_SWEEP" r.sqlite 3 2 2 q,k scale 1e-3,0.1,1 sink,tv
qkv plot r.sqlite --metric sink --kind heatmap --epsilon 0.1 -o heat.html
look heat.html
qkv plot r.sqlite --metric tv --by head --target q -o lines.html
look lines.html
qkv plot r.sqlite --metric tv --kind ranking --epsilon 1 --layers 1 -o ranking.html
look ranking.html
qkv reproduce heat.html --results r.sqlite --check -o again.html && cmp heat.html again.html && echo 'the same'
qkv plot r.sqlite --metric sink --kind heatmap --epsilon 0.1 -o - --format html | head -c 15
echo
# With the sweep's model the page has the scores of its heads, and no other model will do.
qkv sweep -m "$VECTORS/gemma2/model.gguf" --tokens 5,6,7,8 --tokens 9,8,7 --targets none,q --epsilon 0.5 --metrics tv --layers 0-1 -t 1 \
    -o g.sqlite -q
qkv plot g.sqlite --kind heatmap -m "$VECTORS/gemma2/model.gguf" -o g.html
python3 - <<'PY'
import base64, json, re
data = json.loads(re.search(r'id="qkv-data">(.*?)</script>', open("g.html").read(), re.S).group(1))["attention"]
print([len(prompt["tokens"]) for prompt in data["prompts"]], [len(prompt["scores"]) for prompt in data["prompts"]],
      data["softcap"], [len(base64.b64decode(prompt["scores"][0]["data"])) // 4 for prompt in data["prompts"]])
PY
qkv plot g.sqlite --kind heatmap -m "$MODELS/default.gguf" -o other.html
qkv plot g.sqlite --kind heatmap -m "$VECTORS/gemma2/model.gguf" -o other.svg
qkv reproduce g.html --results g.sqlite --check
ls other* 2>/dev/null
