#!/usr/bin/env python3
"""Trains the default model: a small Llama on tokens.u16. Needs torch and numpy (python3-torch 1.13 or later).
usage: OMP_NUM_THREADS=2 train.py SECONDS OUT.pt [THREADS [START.pt]]     progress every 200 steps; a checkpoint and per-layer sink figures every 600

A share of the sequences repeats a segment of random common words: copying has to be learnt (induction heads), and while there is nothing to
copy yet those heads have to do nothing, which is what makes them rest on the first token. With text alone, 3,000 steps showed neither copying nor
sinks; with this, 300 steps gave 98 % copying accuracy and five heads above 0.8.
"""
import math, sys, time
import numpy as np, torch
from torch import nn
import torch.nn.functional as F

VOCAB, DIM, LAYERS, HEADS, KV, FF, T, BATCH = 4096, 128, 6, 4, 2, 384, 128, 16
PEAK_LR, DECAY = 2e-3, 0.1
REPEAT_EARLY, REPEAT_LATE, EARLY = 0.2, 0.2, 0.3      # share of repeated sequences before and after EARLY of the time
HEAD = DIM // HEADS
seconds, out = float(sys.argv[1]), sys.argv[2]
if len(sys.argv) > 3: torch.set_num_threads(int(sys.argv[3]))
torch.manual_seed(0)
data = torch.from_numpy(np.fromfile("tokens.u16", "<u2").astype(np.int64))
train, val = data[:-200000], data[-200000:]
COMMON = torch.bincount(data, minlength=VOCAB).argsort(descending=True)[:1024]
done = 0

freq = 1 / 10000 ** (torch.arange(0, HEAD, 2) / HEAD)
angle = torch.outer(torch.arange(1024.), freq)
COS, SIN = torch.cat([angle, angle], -1).cos(), torch.cat([angle, angle], -1).sin()
MASK = torch.triu(torch.full((1024, 1024), -1e9), 1)

def rope(x):
    t = x.shape[-2]; a, b = x[..., :HEAD // 2], x[..., HEAD // 2:]
    return x * COS[:t] + torch.cat([-b, a], -1) * SIN[:t]

class Norm(nn.Module):
    def __init__(self): super().__init__(); self.w = nn.Parameter(torch.ones(DIM))
    def forward(self, x): return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.w

class Block(nn.Module):
    def __init__(self):
        super().__init__(); lin = lambda i, o: nn.Linear(i, o, bias=False)
        self.n1, self.n2 = Norm(), Norm()
        self.q, self.k, self.v, self.o = lin(DIM, HEADS * HEAD), lin(DIM, KV * HEAD), lin(DIM, KV * HEAD), lin(HEADS * HEAD, DIM)
        self.g, self.u, self.dn = lin(DIM, FF), lin(DIM, FF), lin(FF, DIM)
    def forward(self, x, patterns):
        b, t, _ = x.shape; h = self.n1(x)
        split = lambda y, n: y.view(b, t, n, HEAD).transpose(1, 2)
        q, k, v = rope(split(self.q(h), HEADS)), rope(split(self.k(h), KV)), split(self.v(h), KV)
        k, v = k.repeat_interleave(HEADS // KV, 1), v.repeat_interleave(HEADS // KV, 1)
        a = ((q @ k.transpose(-1, -2)) / math.sqrt(HEAD) + MASK[:t, :t]).softmax(-1)
        if patterns is not None: patterns.append(a)
        x = x + self.o((a @ v).transpose(1, 2).reshape(b, t, -1)); h = self.n2(x)
        return x + self.dn(F.silu(self.g(h)) * self.u(h))

class Model(nn.Module):
    def __init__(self):
        super().__init__(); self.e = nn.Embedding(VOCAB, DIM); self.b = nn.ModuleList(Block() for _ in range(LAYERS)); self.n = Norm()
        for p in self.parameters():
            if p.dim() == 2: nn.init.normal_(p, std=0.02)
        for blk in self.b:
            for w in (blk.o.weight, blk.dn.weight): nn.init.normal_(w, std=0.02 / math.sqrt(2 * LAYERS))
    def forward(self, x, patterns=None):
        x = self.e(x)
        for blk in self.b: x = blk(x, patterns)
        return self.n(x) @ self.e.weight.T

def batch(src, n=BATCH):
    x = torch.stack([src[i:i + T] for i in torch.randint(len(src) - T, (n,))]).clone(); x[:, 0] = 0
    if src is train:
        for r in range(n):
            if torch.rand(()) >= (REPEAT_EARLY if done < EARLY else REPEAT_LATE): continue
            l = int(torch.randint(8, T // 2 - 4, (1,)))
            seg = COMMON[torch.randint(len(COMMON), (l,))] if torch.rand(()) < 0.8 else x[r, 1:1 + l].clone()
            x[r, 1:] = seg.repeat((T - 1) // l + 1)[:T - 1]
    return x

def loss_of(x, patterns=None):
    return F.cross_entropy(model(x, patterns)[:, :-1].reshape(-1, VOCAB), x[:, 1:].reshape(-1))

def evaluate():
    rng = torch.get_rng_state(); torch.manual_seed(1); patterns = []
    with torch.no_grad(): l = loss_of(batch(val), patterns)
    seg = COMMON[torch.randint(len(COMMON), (16, 40))]
    twice, shown = torch.cat([torch.zeros(16, 1, dtype=torch.long), seg, seg], 1), []
    with torch.no_grad(): copied = (model(twice, shown)[:, 41:80].argmax(-1) == twice[:, 42:81]).float().mean().item()
    torch.set_rng_state(rng)
    print("  copying", round(copied, 3), "first-token attention before the repeat", [[round(v, 2) for v in a[:, :, 1:41, 0].mean((0, 2)).tolist()] for a in shown])
    print("  val", round(l.item(), 3), "first-token attention per head", [[round(v, 2) for v in a[:, :, 1:, 0].mean((0, 2)).tolist()] for a in patterns], flush=True)

model = Model()
if len(sys.argv) > 4: model.load_state_dict(torch.load(sys.argv[4]))
print(sum(p.numel() for p in model.parameters()), "parameters")
opt = torch.optim.AdamW([{"params": [p for p in model.parameters() if p.dim() == 2], "weight_decay": DECAY},
                         {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0}], lr=1, betas=(0.9, 0.95))
start, step, smooth = time.time(), 0, None
while (done := (time.time() - start) / seconds) < 1:
    for g in opt.param_groups: g["lr"] = PEAK_LR * min(1, (step + 1) / 200) * (1 if done < 0.3 else max(0.02, (1 - done) / 0.7))
    loss = loss_of(batch(train)); opt.zero_grad(set_to_none=True); loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0); opt.step(); step += 1
    smooth = loss.item() if smooth is None else .98 * smooth + .02 * loss.item()
    if step % 200 == 0: print(step, "loss", round(smooth, 3), "tokens/s", round(step * BATCH * T / (time.time() - start)), flush=True)
    if step % 600 == 0: evaluate(); torch.save(model.state_dict(), out)
evaluate(); torch.save(model.state_dict(), out)
