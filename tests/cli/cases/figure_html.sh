# Figures as pages: every kind, with the numbers of the figure to the last bit; nothing to fetch; tokens stay text.
look() {
    python3 - "$@" <<'PY'
import base64, hashlib, json, re, struct, sys

text = open(sys.argv[1], encoding="utf-8").read()
data = json.loads(re.search(r'id="qkv-data">(.*?)</script>', text, re.S).group(1))["parts"][0]

def numbers(entry):
    raw = base64.b64decode(entry["data"])
    kind = "<%de" if entry["type"] == "F16" else "<%df"
    values = list(struct.unpack(kind % (len(raw) // (2 if entry["type"] == "F16" else 4)), raw))
    if not entry["masked"]:
        return values
    out, n = [0.0] * (entry["rows"] * entry["cols"]), entry["cols"]
    for i in range(entry["rows"]):
        first = max(0, i - entry["window"] + 1) if entry["window"] else 0
        for j in range(first, i + 1):
            out[i * n + j] = values.pop(0)
    return out

print(data["kind"], data["site"], "%d x %d panels, %d maps," % (data["rows"], data["cols"], len(data["maps"])),
      data["storage"]["type"], "pooled" if data["storage"]["pooled"] else "whole")
for panel in data["panels"][:4]:
    found = numbers(data["maps"][panel["map"]])
    sums = [sum(found[i:i + data["maps"][panel["map"]]["cols"]]) for i in range(0, len(found), data["maps"][panel["map"]]["cols"])]
    print(" ", panel["title"], "|", panel["edits"], "|", " ".join("%s:%g" % (f["axis"], f["eps"]) for f in panel["factors"]),
          "| rows sum to 1" if all(abs(s - 1) < 1e-5 for s in sums) else "| other rows")
# Its values are those that --data has.
if len(sys.argv) > 2:
    raw = open(sys.argv[2], "rb").read()
    length = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + length])
    same = 0
    for panel in data["panels"]:
        entry = head["r%d.c%d" % (panel["row"], panel["col"])]
        start, end = entry["data_offsets"]
        drawn = list(struct.unpack("<%df" % ((end - start) // 4), raw[8 + length + start:8 + length + end]))
        same += drawn == numbers(data["maps"][panel["map"]])
    print("  the same bits in %d of %d panels" % (same, len(data["panels"])))
# The policy names the script and the style that are there.
policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
for tag in ("style", 'script type="module"'):
    body = re.search("<%s>(.*?)</%s>" % (tag, tag.split()[0]), text, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
    print("  policy:", tag.split()[0], "'sha256-%s'" % digest in policy)
print("  scripts:", len(re.findall("<script", text)), "addresses:", len(re.findall(r"(?:src|href)=", text)))
PY
}
# Powers of two: scaling the query or the key by one gives the same bits on every processor.
qkv figure modify --layer 5 --head 0 --eps 0.5,0.125 --tokens 5,6,7,8 -o modify.html --data modify.safetensors
look modify.html modify.safetensors
qkv figure mean --layer 5 --head 0 --tokens 5,6,7,8 --tokens 9,10 -o mean.html --data mean.safetensors
look mean.html mean.safetensors
qkv figure grid --layer 5 --head 0 --tokens 5,6,7,8 --col 'A=q@5.h0[1:]=scale:0.5 + k@5=scale:2' --col 'B=pattern@5.h0[:,0]=set:0' \
    -o grid.html --data grid.safetensors
look grid.html grid.safetensors
qkv figure grid --layer 5 --head 0 --tokens 5,6,7 --show scores --col 'A=q@5.h0=scale:0.5' -o scores.html
look scores.html
qkv figure heads --layers 1-2 --tokens 5,6,7,8 --variant 'v@1=zero' -o heads.html --data heads.safetensors
look heads.html heads.safetensors
qkv figure rows --tokens 5,6,7,8 --query 2 -o rows.html --data rows.safetensors
look rows.html rows.safetensors
# A page has whole maps, whatever is drawn.
qkv figure modify --layer 5 --head 0 --eps 0.5,0.125 --tokens 5,6,7,8 --skip-keys 1 --diff -o less.html
look less.html
# The same bytes for the same figure, also on standard output.
qkv figure modify --layer 5 --head 0 --tokens 5,6,7,8 --data modify.safetensors -o modify.html -q
cp modify.html first.html
qkv figure modify --layer 5 --head 0 --tokens 5,6,7,8 --data modify.safetensors -o modify.html -q
cmp first.html modify.html && echo 'the same bytes'
qkv reproduce modify.html -o again.html -q && cmp modify.html again.html && echo 'made again'
qkv reproduce modify.html -o again.svg -q && qkv reproduce again.svg -o third.html -q && cmp modify.html third.html && echo 'by way of an SVG'
qkv reproduce modify.html --check
qkv figure modify --layer 5 --head 0 --tokens 5,6 -o - --format html | head -c 15
echo
# Texts of prompts and labels cannot become markup.
qkv figure grid --layer 5 --head 0 -p 'a </script><script>alert(1)</script> <!-- & "b"' --col '<b>x</b>=q@5.h0=scale:2' -o hostile.html
grep -c 'alert(1)</script>\|<b>x' hostile.html
look hostile.html | tail -n 3
qkv recipe extract hostile.html -o recipe.json && qkv reproduce hostile.html --check
qkv figure modify --layer 5 --head 0 --tokens 5,6 --no-recipe -o none.html && qkv reproduce none.html --check
# What a page has no use for is an error; with a drawing beside it, it is not.
for option in '--labels index' '--values never' '--no-axis-labels' '--panel-size 200' '--masked hatch' '--font Serif' '--width 85mm' \
    '--text text' '--dpi 300'; do
    # shellcheck disable=SC2086
    qkv figure modify --layer 5 --head 0 --tokens 5,6 $option -o none.html
done
qkv figure modify --layer 5 --head 0 --tokens 5,6 --labels index --masked hatch -o drawn.html -o drawn.svg
qkv figure modify --layer 5 --head 0 --tokens 5,6 --no-notes --title '' -o bare.html
grep -o '"title":"","small_print":""' bare.html
