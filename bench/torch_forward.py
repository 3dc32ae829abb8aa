#!/usr/bin/env python3
"""A plain PyTorch forward pass of the two shapes, to compare `qkv-bench --only forward` with.

usage: torch_forward.py [TOKENS [ROUNDS]]        needs torch; weights are random, F32, eager attention, all logits
"""
import statistics, sys, time
import torch
import torch.nn.functional as F

T = int(sys.argv[1]) if len(sys.argv) > 1 else 128
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 7
r = lambda *shape: torch.randn(*shape) * 0.02
mask = torch.triu(torch.full((T, T), float("-inf")), 1)

def attend(q, k, v, heads, kv):
    q, k, v = (x.view(T, n, -1).transpose(0, 1) for x, n in ((q, heads), (k, kv), (v, kv)))
    k, v = k.repeat_interleave(heads // kv, 0), v.repeat_interleave(heads // kv, 0)
    a = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + mask).softmax(-1)
    return (a @ v).transpose(0, 1).reshape(T, -1)

def gpt2(L=12, D=768, H=12, FF=3072, V=50257):
    e, n = r(V, D), torch.ones(D)
    layers = [(r(3 * D, D), r(D, D), r(FF, D), r(D, FF)) for _ in range(L)]
    def run(tokens):
        x = e[tokens]
        for qkv, o, up, down in layers:
            q, k, v = F.linear(F.layer_norm(x, (D,), n, n), qkv).split(D, -1)
            x = x + F.linear(attend(q, k, v, H, H), o)
            h = F.linear(F.layer_norm(x, (D,), n, n), up)
            x = x + F.linear(0.5 * h * (1 + torch.tanh(0.79788456 * (h + 0.044715 * h ** 3))), down)
        return F.layer_norm(x, (D,), n, n) @ e.T
    return run

def smollm(L=30, D=576, H=9, G=3, FF=1536, V=49152):
    d, e = D // H, r(V, D)
    layers = [(r(D, D), r(G * d, D), r(G * d, D), r(D, D), r(FF, D), r(FF, D), r(D, FF)) for _ in range(L)]
    angle = torch.outer(torch.arange(T).float(), 10000 ** (-torch.arange(0, d, 2) / d))
    cos, sin = torch.cat([angle, angle], -1).cos(), torch.cat([angle, angle], -1).sin()
    norm = lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
    def rope(x, n):
        x = x.view(T, n, d).transpose(0, 1)
        return (x * cos + torch.cat([-x[..., d // 2:], x[..., :d // 2]], -1) * sin).transpose(0, 1).reshape(T, -1)
    def run(tokens):
        x = e[tokens]
        for q, k, v, o, gate, up, down in layers:
            h = norm(x)
            x = x + F.linear(attend(rope(F.linear(h, q), H), rope(F.linear(h, k), G), F.linear(h, v), H, G), o)
            h = norm(x)
            x = x + F.linear(F.silu(F.linear(h, gate)) * F.linear(h, up), down)
        return norm(x) @ e.T
    return run

torch.manual_seed(0)
tokens = torch.arange(T) * 31 % 40000
with torch.no_grad():
    models = {"gpt2-124m": gpt2(), "smollm-135m": smollm()}
    for run in models.values(): run(tokens)
    times = {name: [] for name in models}
    for _ in range(ROUNDS):
        for name, run in models.items():
            start = time.time(); run(tokens); times[name].append(time.time() - start)
for name, t in times.items(): print(f"{name}: {T} tokens, median of {ROUNDS}: {1e3 * statistics.median(t):.1f} ms")
