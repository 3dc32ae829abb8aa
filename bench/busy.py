#!/usr/bin/env python3
"""How much slower is a forward pass when one core is taken by another process?

usage: busy.py QKV [--rounds 5] [--models DIR]

Rounds with and without a process that does nothing but compute, pinned to the first core, take turns. With two cores,
perfect sharing would give 1.33.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile

from peers import bench_of, output_of

SHAPE = "gpt2-124m"


def forward(qkv, model):
    text = output_of(bench_of(qkv), "-m", model, "--only", "forward-last", "--repeats", "3", "--json")
    return json.loads(text)["models"][0]["measurements"]["forward-last"]["median"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("qkv")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", help="directory that keeps the model with random weights")
    args = parser.parse_args()
    idle, busy = [], []
    with tempfile.TemporaryDirectory() as scratch:
        model = os.path.join(args.models or scratch, f"{SHAPE}-f32.gguf")
        if not os.path.exists(model):
            output_of(bench_of(args.qkv), "--shape", SHAPE, "--only", "load", "--repeats", "1", "--keep",
                      os.path.dirname(model))
        for _ in range(args.rounds):
            idle.append(forward(args.qkv, model))
            other = subprocess.Popen([sys.executable, "-c", "while True: pass"],
                                     preexec_fn=lambda: os.sched_setaffinity(0, {0}))
            try:
                busy.append(forward(args.qkv, model))
            finally:
                other.kill()
                other.wait()
    ratio = statistics.median(busy) / statistics.median(idle)
    print(f"{SHAPE}, 128 tokens, one of {os.cpu_count()} cores busy")
    print(f"  idle {1e3 * statistics.median(idle):8.1f} ms\n  busy {1e3 * statistics.median(busy):8.1f} ms")
    print(f"  busy / idle {ratio:5.2f}   at most 2.5: {'holds' if ratio <= 2.5 else 'does not hold'}")


if __name__ == "__main__":
    main()
