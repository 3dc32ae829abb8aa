#!/usr/bin/env python3
"""How much Python adds to C, and what the same study costs with PyTorch and hooks.

    bench/python.py [--program build/qkv] [--model MODEL] [--rounds 7]      needs the package: make python

Prints, as medians of interleaved rounds:
  import      import qkv, in a process of its own
  call        run() on a tiny prompt, less the same calls of C through the same binding
  array       one array out of a result
  grids       the two figures, computed and rendered: in Python, and by the program (`qkv figure`, less its start)
  hooks       the grid of `modify` (nine edits of one head): qkv, and PyTorch modules with forward hooks. They have
              the same weights and compute what transformers' eager attention computes; needs torch, and a model of
              the llama family
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import qkv
from qkv._core import ffi, lib

TEXT = "The river runs past the old mill and down to the sea. A boat lies at the quay, and nobody is in it."


def median_of(functions, rounds):
    """One after the other, so that other load meets all alike."""
    times = {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(t) for name, t in times.items()}


def measure_import(rounds):
    code = "import time; t = time.perf_counter(); import qkv; print(time.perf_counter() - t)"
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(3 * rounds)
    ]
    print(f"import      {statistics.median(times):.3f} s, least {min(times):.3f} s (target: below 0.15 s)")


def measure_call(model, rounds):
    ids = model.tokenize("The river").tolist()
    session, array, err = model._session().pointer, ffi.new("int32_t[]", ids), ffi.new("qkv_error *")

    def c_only():
        plan, result = ffi.new("qkv_plan **"), ffi.new("qkv_result **")
        lib.qkv_plan_new(plan, model._pointer, array, len(ids), err)
        lib.qkv_plan_add_variant(plan[0], b"q@0.h1=zero", ffi.NULL, err)
        lib.qkv_plan_add_capture(plan[0], b"pattern@0", err)
        assert lib.qkv_session_run(session, result, plan[0], err) == 0
        lib.qkv_result_free(result[0])
        lib.qkv_plan_free(plan[0])

    times = median_of({"python": lambda: model.run(ids, ["q@0.h1=zero"], ["pattern@0"]), "c": c_only}, 200 * rounds)
    print(
        f"call        {1e6 * (times['python'] - times['c']):.0f} us beyond {1e6 * times['c']:.0f} us of C "
        "(target: below 50 us)"
    )
    result = model.run(ids, ["q@0.h1=zero"], ["pattern@0"])
    times = median_of({"array": lambda: result[1]["pattern", 0]}, 1000)
    print(f"array       {1e6 * times['array']:.1f} us")


def measure_grids(model, name, program, rounds):
    """Both compute and render anew each time: a new session, no picture kept."""
    with tempfile.TemporaryDirectory() as work:

        def by_program(kind):
            def run():
                arguments = [
                    program,
                    "figure",
                    kind,
                    *(["-m", name] if name else []),
                    "-o",
                    os.path.join(work, "a.svg"),
                ]
                subprocess.run(arguments, check=True, capture_output=True)

            return run

        def by_python(kind):
            code = (
                f"import qkv; m = qkv.open({name!r}); m.{kind}(no_recipe=False).save({os.path.join(work, 'b.svg')!r})"
            )
            return lambda: subprocess.run([sys.executable, "-c", code], check=True)

        starts = {
            "program": lambda: subprocess.run(
                [program, "figure", "modify", "--help"], check=True, capture_output=True
            ),
            "python": lambda: subprocess.run([sys.executable, "-c", "import numpy, qkv, qkv.figures"], check=True),
        }
        start = median_of(starts, rounds)
        for kind in ("modify", "mean"):
            times = median_of({"python": by_python(kind), "program": by_program(kind)}, rounds)
            python, c = times["python"] - start["python"], times["program"] - start["program"]
            print(
                f"grids       {kind}: Python {1e3 * python:.1f} ms, program {1e3 * c:.1f} ms, "
                f"ratio {python / c:.2f} (target: at most 1.05)"
            )


# ---- PyTorch with hooks ----


def torch_llama(model):
    """The model as PyTorch modules, with q, k and v as modules of their own to hang hooks on."""
    import torch

    info, w = model.info, model.weights
    H, G, d = info.n_head, info.n_kv_head, info.head_dim
    tensor = torch.from_numpy

    def linear(name, layer):
        weight = tensor(w[name, layer])
        made = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
        made.weight = torch.nn.Parameter(weight, requires_grad=False)
        return made

    layers = [{n: linear(n, i) for n in ("q", "k", "v", "o", "gate", "up", "down")} for i in range(info.n_layer)]
    norms = [(tensor(w["attn_norm", i]), tensor(w["ffn_norm", i])) for i in range(info.n_layer)]
    embedding, last, output = tensor(w["token_embd"]), tensor(w["output_norm"]), tensor(w["output"])

    def norm(x, weight):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * weight

    def run(ids, patterns):
        T = len(ids)
        angle = torch.outer(torch.arange(T).float(), 10000 ** (-torch.arange(0, d, 2) / d))
        cos, sin = (torch.cat([f(angle)] * 2, -1)[:, None] for f in (torch.cos, torch.sin))
        mask = torch.triu(torch.full((T, T), float("-inf")), 1)

        def turn(x):
            return x * cos + torch.cat([-x[..., d // 2 :], x[..., : d // 2]], -1) * sin

        x = embedding[ids]
        for i, part in enumerate(layers):
            h = norm(x, norms[i][0])
            q, k, v = (part[n](h).view(T, -1, d) for n in "qkv")
            q, k = turn(q).transpose(0, 1), turn(k).transpose(0, 1).repeat_interleave(H // G, 0)
            a = (q @ k.transpose(-1, -2) / d**0.5 + mask).softmax(-1)
            patterns[i] = a
            z = a @ v.transpose(0, 1).repeat_interleave(H // G, 0)
            x = x + part["o"](z.transpose(0, 1).reshape(T, -1))
            h = norm(x, norms[i][1])
            x = x + part["down"](torch.nn.functional.silu(part["gate"](h)) * part["up"](h))
        return norm(x, last) @ output.T

    return layers, run


def measure_hooks(model, rounds):
    try:
        import torch
    except ImportError:
        print("hooks       PyTorch is not installed (python3-torch)")
        return
    if model.info.architecture != "llama" or not model.info.position.startswith("rope"):
        print("hooks       only with a model of the llama family")
        return
    ids = model.tokenize(TEXT)
    layer, head, d = model.info.n_layer // 2, 1, model.info.head_dim
    layers, run = torch_llama(model)
    edits = [f"{site}@{layer}.h{head}=scale:{eps}" for site in "qkv" for eps in (0.5, 1e-3, 1e-10)]

    def by_qkv():
        return qkv.open(model.info.path).run(ids, edits, [("pattern", layer)])

    def by_hooks():
        found, group = [], model.info.n_head // model.info.n_kv_head
        with torch.no_grad():
            for edit in [None, *edits]:
                hook = None
                if edit:
                    site, eps = edit[0], float(edit.split(":")[1])
                    at = (
                        head if site == "q" else head // group
                    )  # of keys and values a whole group: hooks cannot split it

                    def scale(module, inputs, out, at=at, eps=eps):
                        out = out.clone()
                        out[:, at * d : (at + 1) * d] *= eps
                        return out

                    hook = layers[layer][site].register_forward_hook(scale)
                patterns = {}
                run(torch.from_numpy(ids.astype(np.int64)), patterns)
                found.append(patterns[layer][head].numpy())
                if hook:
                    hook.remove()
        return found

    r, found = by_qkv(), by_hooks()
    worst = max(np.abs(r[i].pattern[layer].h[head] - found[i]).max() for i in range(4))  # unedited, and queries
    assert worst < 1e-3, f"the two do not agree: {worst}"
    times = median_of({"qkv": by_qkv, "hooks": by_hooks}, rounds)
    print(
        f"hooks       {len(ids)} tokens, layer {layer}: qkv {1e3 * times['qkv']:.1f} ms (a new session), "
        "PyTorch with hooks "
        f"{1e3 * times['hooks']:.1f} ms, ratio {times['hooks'] / times['qkv']:.1f}; they agree to {worst:.1e}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--program", default=os.path.join(root, "build", "qkv"))
    parser.add_argument("--model", default=None)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    model = qkv.open(options.model)
    print(f"{model}, load {os.getloadavg()[0]:.1f}")
    measure_import(options.rounds)
    measure_call(model, options.rounds)
    measure_grids(model, options.model, options.program, options.rounds)
    measure_hooks(model, options.rounds)


main()
