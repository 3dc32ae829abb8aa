#!/usr/bin/env python3
"""Makes seeds for the fuzzers from the models of tests/vectors: the same families, keys and tensors, but
one layer, a few channels and twelve tokens, so that mutations do not only hit weights.

    tests/fuzz/shrink.py tests/vectors GGUF_DIR CONFIG_DIR

GGUF_DIR/NAME is a GGUF file; CONFIG_DIR/NAME is config.json, a NUL, and model.safetensors. Which of them are
worth a place in the corpus says `fuzz_NAME -merge=1`. Standard library only.
"""
import json
import pathlib
import struct
import sys

TOKENS = 12
OLD_TOKENS = 140
FIXED = {"<B": 0, "<b": 1, "<H": 2, "<h": 3, "<I": 4, "<i": 5, "<f": 6, "<?": 7, "<Q": 10, "<q": 11, "<d": 12}
FORMATS = {number: text for text, number in FIXED.items()}
STRING, ARRAY = 8, 9


class Scale:
    """Old widths to new ones. Heads of 16 channels get 2; those of 12 get 2, or 4 where RoPE turns a part of them."""

    def __init__(self, head_dim, partial):
        self.divisor = 8 if head_dim == 16 else 3 if partial else 6

    def __call__(self, n):
        if n == OLD_TOKENS:
            return TOKENS
        if n < 6 or n in (8, 10):
            return n  # experts, kinds of tokens
        if n == 192 and self.divisor == 3:
            return 12  # a feed-forward block's
        if n % self.divisor == 0:
            return n // self.divisor
        return n // 8  # widths of feed-forward blocks: 64, 112, 128, 256


def first_rows(data, shape, new, size):
    """The leading part of a row-major array along every axis."""
    if not shape:
        return data[:size]
    step = len(data) // shape[0]
    return b"".join(first_rows(data[i * step:(i + 1) * step], shape[1:], new[1:], size) for i in range(new[0]))


# ---- GGUF ----

class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, fmt):
        (value,) = struct.unpack_from(fmt, self.data, self.at)
        self.at += struct.calcsize(fmt)
        return value

    def string(self):
        n = self.number("<Q")
        self.at += n
        return self.data[self.at - n:self.at]

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            inner, n = self.number("<I"), self.number("<Q")
            return inner, [self.value(inner) for _ in range(n)]
        return self.number(FORMATS[kind])


def pack_string(text):
    return struct.pack("<Q", len(text)) + text


def pack_value(kind, value):
    if kind == STRING:
        return pack_string(value)
    if kind == ARRAY:
        inner, items = value
        return struct.pack("<IQ", inner, len(items)) + b"".join(pack_value(inner, item) for item in items)
    return struct.pack(FORMATS[kind], value)


def shrink_key(key, kind, value, n_layer, scale, kept):
    last = key.split(".", 1)[1] if "." in key else key
    if last == "block_count":
        return 1
    if last in ("context_length", "rope.scaling.original_context_length"):
        return max(value // 8, 1)
    if last in ("embedding_length", "feed_forward_length", "expert_feed_forward_length", "vocab_size",
                "attention.key_length", "attention.value_length", "rope.dimension_count",
                "attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa"):
        return (value[0], [scale(v) for v in value[1][:1]]) if kind == ARRAY else scale(value)
    if kind == ARRAY and key == "tokenizer.ggml.merges":
        return value[0], [m for m in value[1] if set(m.split(b" ", 1)) | {m.replace(b" ", b"", 1)} <= kept]
    if kind == ARRAY and len(value[1]) == OLD_TOKENS:
        return value[0], value[1][:TOKENS]
    if kind == ARRAY and len(value[1]) == n_layer:
        return value[0], value[1][:1]
    return value


def shrink_gguf(data, scale):
    reader = Reader(data)
    reader.at = 8
    n_tensors, n_keys = reader.number("<Q"), reader.number("<Q")
    keys = []
    for _ in range(n_keys):
        name, kind = reader.string().decode(), reader.number("<I")
        keys.append((name, kind, reader.value(kind)))
    infos = []
    for _ in range(n_tensors):
        name = reader.string().decode()
        shape = [reader.number("<Q") for _ in range(reader.number("<I"))]
        infos.append((name, shape, reader.number("<I"), reader.number("<Q")))
    start = (reader.at + 31) // 32 * 32
    values = {name: value for name, _, value in keys}
    n_layer = next(value for name, value in values.items() if name.endswith(".block_count"))
    kept = set(values["tokenizer.ggml.tokens"][1][:TOKENS])

    head = b"".join(pack_string(name.encode()) + struct.pack("<I", kind) +
                    pack_value(kind, shrink_key(name, kind, value, n_layer, scale, kept)) for name, kind, value in keys)
    blob = b""
    count = 0
    for name, shape, kind, offset in infos:
        if name.startswith("blk.") and not name.startswith("blk.0."):
            continue
        size = {0: 4, 1: 2}[kind]
        total = size
        for n in shape:
            total *= n
        new = [scale(n) for n in shape]
        part = first_rows(data[start + offset:start + offset + total], shape[::-1], new[::-1], size)
        head += pack_string(name.encode()) + struct.pack(f"<I{len(new)}QIQ", len(new), *new, kind, len(blob))
        blob += part + bytes(-len(part) % 32)
        count += 1
    head = data[:8] + struct.pack("<QQ", count, n_keys) + head
    return head + bytes(-len(head) % 32) + blob


# ---- Hugging Face ----

WIDTHS = ("hidden_size", "n_embd", "intermediate_size", "moe_intermediate_size", "ffn_hidden_size", "n_inner", "head_dim",
          "vocab_size", "n_positions", "n_ctx")
CONTEXTS = ("max_position_embeddings", "original_max_position_embeddings")


def is_later_layer(name):
    numbers = [int(part) for part in name.split(".") if part.isdigit()]
    return bool(numbers) and numbers[0] > 0


def shrink_config(config, scale):
    n_layer = config.get("num_hidden_layers", config.get("n_layer"))
    small = {}
    for key, value in config.items():
        if key in ("num_hidden_layers", "n_layer"):
            value = 1
        elif key in WIDTHS and value:
            value = scale(value)
        elif key in CONTEXTS:
            value = scale(value) if config["model_type"] == "bert" else value // 8
        elif isinstance(value, list) and len(value) == n_layer:
            value = value[:1]
        small[key] = value
    return json.dumps(small, separators=(",", ":")).encode()


def shrink_safetensors(data, scale):
    (length,) = struct.unpack_from("<Q", data)
    header, blob, small = json.loads(data[8:8 + length]), b"", {}
    for name, info in header.items():
        if name == "__metadata__" or is_later_layer(name):
            continue
        first, end = info["data_offsets"]
        shape = info["shape"]
        new = [scale(n) for n in shape]
        part = first_rows(data[8 + length + first:8 + length + end], shape, new, 4)
        small[name] = {"dtype": info["dtype"], "shape": new, "data_offsets": [len(blob), len(blob) + len(part)]}
        blob += part
    text = json.dumps(small, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + blob


def main():
    vectors, gguf_dir, config_dir = map(pathlib.Path, sys.argv[1:4])
    for folder in sorted(path for path in vectors.iterdir() if (path / "hf/config.json").exists()):
        config = json.loads((folder / "hf/config.json").read_text())
        head_dim = config.get("head_dim") or config.get("hidden_size", 48) // config.get("num_attention_heads", 4)
        scale = Scale(head_dim, "partial_rotary_factor" in json.dumps(config) or "rotary_pct" in config)
        (gguf_dir / folder.name).write_bytes(shrink_gguf((folder / "model.gguf").read_bytes(), scale))
        safetensors = shrink_safetensors((folder / "hf/model.safetensors").read_bytes(), scale)
        (config_dir / folder.name).write_bytes(shrink_config(config, scale) + b"\0" + safetensors)


main()
