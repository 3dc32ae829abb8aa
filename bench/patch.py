#!/usr/bin/env python3
"""Patching all layers x positions: `qkv patch`'s sweep, and PyTorch modules with hooks that have the same weights.

    bench/patch.py [--program build/qkv] [--tokens 32] [--rounds 3] [--threads 1] [--every 1] [--model FILE]

Makes a model of GPT-2 124M shape with random weights (`qkv-bench --keep`), and patches resid_pre of one prompt into
another, one (layer, position) at a time, reading the KL of the last token's distribution. The modules compute what
transformers' GPT-2 computes with eager attention, all logits; a forward pre-hook of one block puts the other prompt's
row in. Rounds are interleaved, and medians printed; the two must agree. With --every N only each Nth cell is run with
hooks, and the time multiplied: a full round takes a minute or more.

Times are of the clock, and of the processor (all threads together): the latter tell more on a machine that is busy
with other work. Those of qkv include start, model and file.

Prints also how the sweep compares with the passes' arithmetic: each cell as one pass from its layer on, at the speed
of a plain pass of qkv (the last token's logits). The sweep itself computes less than that: tokens before a patch are
the baseline's. Needs Debian's python3-torch: run it with /usr/bin/python3.
"""
import argparse
import csv
import json
import math
import os
import resource
import statistics
import struct
import subprocess
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F

from peers import bench_of

# ---- weights ----


def read_gguf(path):
    """The F32 tensors of a GGUF file, by name."""
    data = np.memmap(path, dtype=np.uint8, mode="r")
    at = 8

    def take(form):
        nonlocal at
        values = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return values[0]

    def text():
        nonlocal at
        n = take("Q")
        at += n
        return bytes(data[at - n : at]).decode()

    def skip(kind):
        nonlocal at
        if kind == 8:
            text()
        elif kind == 9:
            inner, n = take("I"), take("Q")
            for _ in range(n):
                skip(inner)
        else:
            at += {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}[kind]

    n_tensors, n_keys = take("Q"), take("Q")
    for _ in range(n_keys):
        text()
        skip(take("I"))
    tensors = []
    for _ in range(n_tensors):
        name, n_dims = text(), take("I")
        shape = [take("Q") for _ in range(n_dims)]
        assert take("I") == 0, "the model must be F32"
        tensors.append((name, shape[::-1], take("Q")))
    start = (at + 31) // 32 * 32
    return {
        name: torch.from_numpy(
            np.frombuffer(data, np.float32, math.prod(shape), start + offset).reshape(shape).copy()
        )
        for name, shape, offset in tensors
    }


# ---- PyTorch ----


def linear(w, name):
    weight = w[name + ".weight"]
    made = torch.nn.Linear(weight.shape[1], weight.shape[0])
    made.weight = torch.nn.Parameter(weight, requires_grad=False)
    bias = w.get(name + ".bias", torch.zeros(weight.shape[0]))
    made.bias = torch.nn.Parameter(bias, requires_grad=False)
    return made


class Block(torch.nn.Module):
    def __init__(self, w, i, heads):
        super().__init__()
        self.heads = heads
        self.norms = [(w[f"blk.{i}.{n}.weight"], w.get(f"blk.{i}.{n}.bias")) for n in ("attn_norm", "ffn_norm")]
        self.qkv, self.o = linear(w, f"blk.{i}.attn_qkv"), linear(w, f"blk.{i}.attn_output")
        self.up, self.down = linear(w, f"blk.{i}.ffn_up"), linear(w, f"blk.{i}.ffn_down")

    def forward(self, x):
        T, D = x.shape
        q, k, v = (
            y.view(T, self.heads, -1).transpose(0, 1) for y in self.qkv(F.layer_norm(x, (D,), *self.norms[0])).split(D, -1)
        )
        mask = torch.triu(torch.full((T, T), float("-inf")), 1)
        a = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + mask).softmax(-1)
        x = x + self.o((a @ v).transpose(0, 1).reshape(T, D))
        h = self.up(F.layer_norm(x, (D,), *self.norms[1]))
        return x + self.down(0.5 * h * (1 + torch.tanh(0.7978845608 * (h + 0.044715 * h**3))))


class GPT2(torch.nn.Module):
    def __init__(self, w, layers=12, heads=12):
        super().__init__()
        self.tokens, self.positions = w["token_embd.weight"], w["position_embd.weight"]
        self.blocks = torch.nn.ModuleList([Block(w, i, heads) for i in range(layers)])
        self.norm = (w["output_norm.weight"], w.get("output_norm.bias"))
        self.output = w.get("output.weight", self.tokens)

    def forward(self, ids):
        x = self.tokens[ids] + self.positions[: len(ids)]
        for block in self.blocks:
            x = block(x)
        return F.layer_norm(x, (x.shape[-1],), *self.norm) @ self.output.T


def with_hooks(model, clean, corrupt, cells):
    """KL(clean || patched) of each cell, the clean prompt's rows taken once."""
    kept, values = {}, []
    with torch.no_grad():
        hooks = [
            b.register_forward_pre_hook(lambda m, inputs, i=i: kept.__setitem__(i, inputs[0].clone()))
            for i, b in enumerate(model.blocks)
        ]
        goal = model(clean)[-1].log_softmax(-1)
        for hook in hooks:
            hook.remove()
        for layer, position in cells:

            def patch(module, inputs, layer=layer, position=position):
                x = inputs[0].clone()
                x[position] = kept[layer][position]
                return (x,)

            hook = model.blocks[layer].register_forward_pre_hook(patch)
            out = model(corrupt)[-1].log_softmax(-1)
            hook.remove()
            values.append(float((goal.exp() * (goal - out)).sum()))
    return values


# ---- qkv ----


def with_qkv(program, model, spec, work, threads):
    results = os.path.join(work, "results.sqlite")
    if os.path.exists(results):
        os.remove(results)
    subprocess.run([program, "sweep", spec, "-m", model, "-o", results, "-t", str(threads), "-q"], check=True)
    return results


def read_results(program, results, work):
    table = os.path.join(work, "rows.csv")
    subprocess.run([program, "sweep", "export", results, "-o", table, "-q"], check=True)
    with open(table) as file:
        return {
            (int(r["layer"]), int(r["position"])): float(r["value"]) for r in csv.DictReader(file) if int(r["layer"]) >= 0
        }


def plain_pass(program, model, tokens, threads):
    """Seconds of a pass that ends with the last token's logits: clock, processor."""
    args = [bench_of(program), "-m", model, "-T", str(tokens), "--only", "forward-last", "-t", str(threads), "--json"]
    used = []
    for repeats in (2, 12):
        before = Clock()
        out = subprocess.run([*args, "--repeats", str(repeats)], check=True, capture_output=True, text=True).stdout
        used.append(before.elapsed()[1])
    return json.loads(out)["models"][0]["measurements"]["forward-last"]["median"], (used[1] - used[0]) / 10


class Clock:
    """Seconds since it was made: of the clock, and of the processor, in this process and those it waited for."""

    def __init__(self):
        self.start = self.now()

    @staticmethod
    def now():
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return time.perf_counter(), sum(u.ru_utime + u.ru_stime for u in used)

    def elapsed(self):
        return [now - start for now, start in zip(self.now(), self.start)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--program", default=os.path.join(root, "build", "qkv"))
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--model", help="an F32 GGUF file of GPT-2's shape")
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    with tempfile.TemporaryDirectory() as work:
        path = o.model
        if not path:
            make = [bench_of(o.program), "--shape", "gpt2-124m", "-T", "8", "--only", "load", "--repeats", "1"]
            subprocess.run([*make, "--keep", work], check=True, capture_output=True)
            path = os.path.join(work, "gpt2-124m-f32.gguf")
        # They differ in the first token: no position is the same in both.
        clean = [(31 * i * i + 17 * i + 100) % 40000 for i in range(o.tokens)]
        corrupt = [777, *clean[1:]]
        spec = os.path.join(work, "spec.json")
        with open(spec, "w") as file:
            json.dump({"clean": clean, "corrupt": corrupt, "targets": "resid_pre", "metrics": ["kl"]}, file)
        model = GPT2(read_gguf(path))
        n_layer = len(model.blocks)
        cells = [(layer, position) for layer in range(n_layer) for position in range(o.tokens)]
        some = cells[:: o.every]
        ids = [torch.tensor(p) for p in (clean, corrupt)]
        with_hooks(model, *ids, some[:2])
        times = {"qkv": [], "hooks": [], "pass": []}
        for _ in range(o.rounds):
            clock = Clock()
            results = with_qkv(o.program, path, spec, work, o.threads)
            times["qkv"].append(clock.elapsed())
            clock = Clock()
            values = with_hooks(model, *ids, some)
            times["hooks"].append([seconds * len(cells) / len(some) for seconds in clock.elapsed()])
            times["pass"].append(plain_pass(o.program, path, o.tokens, o.threads))
        rows = read_results(o.program, results, work)
        worst = max(abs(rows[cell] - value) for cell, value in zip(some, values))
        scale = max(abs(value) for value in values)
        assert worst < 1e-3 * scale, f"the two do not agree: {worst} of {scale}"
        passes = sum(n_layer - layer for layer, _ in cells) / n_layer
        print(f"{o.tokens} tokens, {len(cells)} cells, {o.threads} thread(s), {o.rounds} rounds, load {os.getloadavg()[0]:.1f}")
        for which, kind in enumerate(("clock", "processor")):
            t = {name: statistics.median(pair[which] for pair in list_) for name, list_ in times.items()}
            print(f"{kind}: qkv {t['qkv']:.2f} s, hooks {t['hooks']:.2f} s, a pass {t['pass']:.4f} s and {passes:.0f} of them, "
                  f"from each cell's layer on, {passes * t['pass']:.2f} s")
            print(f"    {t['hooks'] / t['qkv']:.1f} times faster than hooks (target: at least 10)")
            print(f"    {t['qkv'] / (passes * t['pass']):.2f} times the passes' time (target: at most 2.5)")
        print(f"they agree to {worst:.1e} of values up to {scale:.2g}")


main()
