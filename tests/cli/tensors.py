"""The files that qkv writes tensors into, for cases: `from tensors import npy, safetensors`."""
import ast
import json
import struct


def floats(data):
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def header(path):
    """The header of a safetensors file, as it stands there, and the bytes after it."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return file.read(length).decode(), file.read()


def safetensors(path):
    """The metadata, and {name: (shape, values)} of tensors in F32."""
    text, data = header(path)
    entries = json.loads(text)
    metadata = entries.pop("__metadata__", {})
    tensors = {}
    for name, entry in entries.items():
        assert entry["dtype"] == "F32", entry
        begin, end = entry["data_offsets"]
        tensors[name] = entry["shape"], floats(data[begin:end])
    return metadata, tensors


def npy(path):
    """Shape and values of one array in F32."""
    with open(path, "rb") as file:
        assert file.read(8) == b"\x93NUMPY\x01\x00"
        (length,) = struct.unpack("<H", file.read(2))
        told = ast.literal_eval(file.read(length).decode())
        assert told["descr"] == "<f4" and not told["fortran_order"], told
        return list(told["shape"]), floats(file.read())
