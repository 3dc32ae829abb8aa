# Every kind of file is made again, byte for byte, from the recipe that it carries.
qkv figure modify --layer 1 --head 0 --tokens 5,6,7,8 -o a.png -o a.svg -o a.pdf --data a.safetensors \
    --report a.html --report a.md --report a.json
for suffix in png svg pdf safetensors html md json; do
    qkv reproduce a.$suffix --check -o b.$suffix
    cmp a.$suffix b.$suffix
done
qkv figure mean --layer 1 --head 0 -p 'The old mill' -p 'A red boat' --baseline -o m.svg
qkv reproduce m.svg --check
qkv figure grid --layer 1 --head 0 --tokens 5,6,7 --col 'A=' --col 'B=q@{layer}=patch:a' --row 'C=v@0=zero' \
    --source-tokens a=8,9,10 --diff -o g.pdf
qkv reproduce g.pdf --check
# The id at the end of the small print finds it in a folder.
mkdir folder
qkv recipe extract a.pdf -o folder
id=$(basename folder/*.json .json)
qkv reproduce "$id" --recipes folder --check 2>/dev/null
qkv reproduce "$id" --recipes folder 2>/dev/null && test -s "reproduced-$id.png" && echo written
# A file that lost its recipe gets it back.
sed 's|<metadata.*</metadata>||' a.svg >lost.svg
qkv reproduce lost.svg --check
qkv recipe insert folder/"$id".json lost.svg && qkv reproduce lost.svg --check
for suffix in png pdf html; do
    qkv figure modify --layer 1 --head 0 --tokens 5,6,7,8 --no-recipe -o n.png -o n.pdf --report n.html
    grep -c qkv-recipe n.$suffix
    qkv recipe copy a.svg n.$suffix && qkv reproduce n.$suffix --check
done
# What was changed is told, with a number where there is one.
sed 's/"eps":"5e-1/"eps":"4e-1/' a.svg >changed.svg
qkv reproduce changed.svg --check 2>&1 | sed 's/[0-9a-f]\{8\}/ID/g'
sed 's/"digest":"..../"digest":"0000/; s/"sample":\[[0-9.e-]*,/"sample":[0.25,/' a.svg >other.svg
qkv reproduce other.svg --check 2>&1 | sed 's/by [0-9.e-]*$/by a number/'
# So is what cannot be compared: a recipe keeps few values of a panel.
sed 's/"digest":"..../"digest":"0000/' a.svg >digest.svg
qkv reproduce digest.svg --check 2>&1
sed 's/"qkv_version":"[^"]*"/"qkv_version":"0"/' digest.svg >version.svg
qkv reproduce version.svg --check
sed 's/"most":1,/"most":1.00001,/' version.svg >near.svg
qkv reproduce near.svg --check | sed 's/than [0-9.e-]*;/than a number;/'
# What a recipe states beside what it asks for is compared, too: its types, then its values.
qkv recipe extract a.svg -o stated.json
python3 - <<'P'
import json
recipe = json.load(open("stated.json"))
def put(name, panel={}, **changes):
    panels = [recipe["panels"][0], {**recipe["panels"][1], **panel}] + recipe["panels"][2:]
    json.dump({**recipe, "panels": panels, **changes}, open("stated-" + name + ".json", "w"))
put("01", layer="abc")
put("02", layer=1000000000)
put("03", head=3)
put("04", site=None)
put("05", site="scores")
put("06", range="x")
put("07", range=[0, 7])
put("08", range=[0, 7], qkv_version="0")
put("09", digest=5)
put("10", digest="0")
put("11", kind=5)
put("12", panels=recipe["panels"][1:])
put("13", {"edits": "q@0=zero"})
put("14", {"edits": 1})
put("15", {"row": 1.5})
put("16", {"col": 7})
put("17", {"input": 1})
put("18", {"digest": 5})
put("19", {"sample": {}})
put("20", range=["x", 1])
P
for file in stated-*.json; do
    qkv reproduce $file --check 2>&1 | sed 's/[0-9a-f]\{32\}/DIGEST/'
    qkv reproduce $file --check >/dev/null 2>&1 && echo "$file passed"
done
# A chart needs its results.
"$MAKE_SWEEP" r.sqlite 2 2 2 q scale 1e-3,1 sink
"$MAKE_SWEEP" r3.sqlite 3 2 2 q scale 1e-3,1 sink
qkv plot r.sqlite --layers 1 -o c.svg
qkv reproduce c.svg --check
qkv reproduce c.svg --results r.sqlite --check -o c2.svg && cmp c.svg c2.svg
sed 's/"cells":/"range":[0,1],"digest":5,"cells":/' c.svg >c3.svg
qkv reproduce c3.svg --results r.sqlite --check
qkv reproduce c.svg --results r3.sqlite --check 2>&1 | sed 's/by [0-9.e-]*$/by a number/'
# No file says where on this machine things lie.
cp "$MODELS/default.gguf" "$PWD/mine.gguf"
qkv figure modify -m "$PWD/mine.gguf" --layer 1 --head 0 --tokens 5,6 -o "$PWD/p.png" -o "$PWD/p.svg" -o "$PWD/p.pdf" \
    --data "$PWD/p.safetensors" --report "$PWD/p.html" --report "$PWD/p.md" --report "$PWD/p.json"
qkv run -m "$PWD/mine.gguf" --tokens 5,6 --capture pattern@0 -o "$PWD/q.safetensors"
qkv plot "$PWD/r.sqlite" -o "$PWD/q.svg"
grep -alF "$PWD" p.* q.*
echo 'no paths'
# Standard output gets the same kind of file; nothing is called '-'.
qkv figure modify --tokens 5,6,7 --layer 0 --head 0 -o said.svg
qkv reproduce said.svg -q -o - | cmp - said.svg && echo 'the same on standard output'
qkv reproduce said.svg --check -o -
qkv recipe extract said.svg -o - | cut -c1-1
qkv recipe copy said.svg said.svg -o - | cmp - said.svg && echo 'the same copy'
ls ./- 2>/dev/null
# What a figure carries is shown.
qkv show said.svg | sed -n 's/: modify, id .*/ is a figure modify/p'
qkv show said.svg --json | grep -c '"model_hash"'
