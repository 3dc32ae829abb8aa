# A .npz is a ZIP archive of .npy files: every tensor under its name, and the metadata.
qkv run --tokens 5,6,7 --variant 'q@0=zero' --capture pattern@0.h0 --capture logits[-1] -o out.npz -o out.safetensors -o out.json
qkv figure modify --tokens 5,6,7 --layer 0 --head 0 --epsilon 0.5 --data figure.npz
cat >read.py <<'END'
import ast, json, struct, sys, zipfile

def read(data):
    assert data[:8] == b"\x93NUMPY\x01\x00"
    end = 10 + struct.unpack("<H", data[8:10])[0]
    assert end % 64 == 0
    return ast.literal_eval(data[10:end].decode()), data[end:]

with open("out.safetensors", "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    values = file.read()
archive = zipfile.ZipFile("out.npz")
assert archive.testzip() is None
for name in archive.namelist():
    about, data = read(archive.read(name))
    if name == "__metadata__.npy":
        assert about["shape"] == () and about["descr"] == "|S%d" % len(data)
        # A .npz has JSON values where safetensors has their text.
        texts = header["__metadata__"]
        for key, value in json.loads(data).items():
            assert value == (texts[key] if isinstance(value, str) else json.loads(texts[key])), key
        continue
    other = header[name[:-4]]
    begin, end = other["data_offsets"]
    print(name, about, data == values[begin:end] and list(about["shape"]) == other["shape"])
archive = zipfile.ZipFile("figure.npz")
print(archive.testzip(), *archive.namelist())
print(sorted(json.loads(read(archive.read("__metadata__.npy"))[1])))
END
python3 read.py
# One whose size has no place is refused.
qkv run --tokens 5 --capture pattern@0 -o a.npz -o a.zip
