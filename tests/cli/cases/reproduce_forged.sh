# A recipe that somebody made up gives one line.
python3 - <<'P'
import json, struct, zlib
work = {"format": 1, "kind": "grid", "model": "m.gguf", "model_hash": "0" * 32, "options": {}, "sources": [],
        "inputs": [{"tokens": [1, 2]}], "rows": [], "cols": [{"label": "A", "edits": ""}], "id": "00000000"}
def put(name, **changes):
    open(name + ".json", "w").write(json.dumps({**work, **changes}))
put("format", format=7)
put("type", inputs="text")
put("tokens", inputs=[{"tokens": [1] * 1100000}])
put("token", inputs=[{"tokens": [1.5]}])
put("panels", cols=[{"label": "A", "edits": ""}] * 10000)
put("kind", kind="nothing")
put("option", options={"run": "rm"})
put("word", options={"scale": "cubic"})
put("limit", options={"dpi": 1e9})
put("hash", model_hash="../../etc/passwd")
put("path", kind="lines", results_hash="/etc/passwd", options={})
put("id")
# The same of the format that figures have had since.
work = {"format": 2, "kind": "grid", "model": "m.gguf", "model_hash": "0" * 32, "options": {"col": "A="}, "look": {},
        "inputs": [{"tokens": [1, 2]}], "id": "00000000"}
put("new-none", inputs=[])
put("new-side", options={"col": [7]})
put("new-panels", options={"col": "A=\n" * 10000})
put("new-kind", kind="study", study="lens")
put("new-option", options={"results": "/etc/passwd"})
put("new-word", look={"scale": "cubic"})
put("new-look", look={"col": "A="})
put("new-id")
open("deep.json", "w").write('{"format":1,"recipe":' + "[" * 100000)
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
def png(name, *chunks):
    open(name, "wb").write(b"\x89PNG\r\n\x1a\n" + b"".join(chunks) + chunk(b"IEND", b""))
png("bomb.png", chunk(b"zTXt", b"qkv-recipe\0\0" + zlib.compress(b"0" * 10000000)))
png("bomb2.png", chunk(b"iTXt", b"qkv-recipe\0\1\0\0\0" + zlib.compress(b"0" * 10000000)))
png("huge.png", chunk(b"iTXt", b"qkv-recipe\0\0\0\0\0" + b"0" * 100000000))
open("keys.pdf", "wb").write(b"%PDF-1.4\n/Keywords (" + b"(" * 1000)
open("other.pdf", "wb").write(b"%PDF-1.7\n")
open("text.txt", "w").write("a text")
P
ldd "$QKV" | grep -q asan || ulimit -v 2000000 # the sanitizer reserves terabytes of address space
for name in *.json *.png *.pdf text.txt; do
    qkv reproduce "$name" 2>&1
done
