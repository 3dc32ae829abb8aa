"""What single heads read: q_in, k_in and v_in, computed again with numpy from the residual stream and the weights."""
import json
import struct

import numpy as np
import pytest

import qkv

TOKENS = [1, 17, 42, 99, 7, 63, 120, 5]
LAYER = 1


def weights(path):
    """The tensors of a safetensors file of F32."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    body = data[8 + size :]
    return {
        name: np.frombuffer(body[t["data_offsets"][0] : t["data_offsets"][1]], np.float32).reshape(t["shape"])
        for name, t in header.items()
    }


def llama(directory):
    w = weights(directory / "model.safetensors")
    prefix = f"model.layers.{LAYER}."
    scale = w[prefix + "input_layernorm.weight"]

    def norm(x):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale

    return norm, {s: (w[f"{prefix}self_attn.{s}_proj.weight"], 0) for s in "qkv"}


def gpt2(directory):
    w = weights(directory / "model.safetensors")
    prefix = f"transformer.h.{LAYER}."

    def norm(x):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)
        return x * w[prefix + "ln_1.weight"] + w[prefix + "ln_1.bias"]

    fused = np.split(w[prefix + "attn.c_attn.weight"].T, 3)
    bias = np.split(w[prefix + "attn.c_attn.bias"], 3)
    return norm, {s: (fused[i], bias[i]) for i, s in enumerate("qkv")}


@pytest.mark.parametrize("name, read", [("llama_gqa", llama), ("gpt2", gpt2)])
@pytest.mark.parametrize("site", ["q", "k", "v"])
def test_heads(source, name, read, site):
    directory = source / "tests" / "vectors" / name / "hf"
    model = qkv.open(directory)
    norm, projections = read(directory)
    matrix, bias = projections[site]
    head, shared = 2, model.info.n_head // model.info.n_kv_head if site != "q" else 1
    rng = np.random.default_rng(1)
    given = rng.normal(size=(len(TOKENS), model.info.n_embd)).astype(np.float32)
    edit = qkv.custom(f"{site}_in", layer=LAYER, head=head, fn=lambda x: given[:, None, :], name="given")
    r = model.run(TOKENS, [edit], [f"{site}@{LAYER}.h*", f"{site}_in@{LAYER}.h*", f"resid_pre@{LAYER}"])
    stream = r[0]["resid_pre", LAYER]
    assert np.array_equal(r[1]["resid_pre", LAYER], stream)
    width = model.info.head_dim
    for variant in range(2):
        inputs, heads = r[variant][f"{site}_in", LAYER], r[variant][site, LAYER]
        assert inputs.shape == (len(TOKENS), model.info.n_head, model.info.n_embd)
        for h in range(model.info.n_head):
            reads = given if variant and h == head else stream
            assert np.array_equal(inputs[:, h], reads)
            rows = slice(h // shared * width, (h // shared + 1) * width)
            expected = norm(reads.astype(np.float64)) @ matrix[rows].T.astype(np.float64)
            expected = expected + (bias[rows] if np.ndim(bias) else 0)
            assert np.abs(heads[:, h] - expected).max() < 1e-4 * max(1, np.abs(expected).max())
