#!/usr/bin/env python3
"""Forward passes with quantised weights, qkv and llama.cpp in turn.

usage: quantised.py QKV LLAMA_BENCH [--types q8_0,q4_K] [--tokens 16,128,512] [--rounds 5] [--threads N]
                    [--real FILE.gguf] [--models DIR]

A model of 1.2 billion random weights is made in every type, measured, and removed (--models keeps them). iq2_xxs needs
real weights: --real names the file (TinyLlama's: `qkv info -m tinyllama` says where it is); its figure is timed as well.
Every round runs both programs once, one after the other, so that whatever else the machine does falls on both alike.
Each process warms up by itself and takes one pass; the table has medians over rounds, in seconds, of the last token's
logits. llama.cpp rounds activations to 8 bits, qkv computes in F32.
"""
import argparse, json, os, statistics, subprocess, tempfile, time

from peers import bench_of, llama, output_of, qkv

SHAPE = "llama-1b"
# Where llama.cpp's 8-bit products pass the F32 peak of the processor, more time is allowed.
FIRST = ("q8_0", "q6_K", "iq2_xxs", "iq4_xs", "f16", "bf16")
SECOND = ("q5_K", "q4_K", "q4_0")
FIGURE_TOKENS = 20


def bound(kind, tokens):
    few = tokens < 64
    return (1.5 if few else 1.0) if kind in FIRST else (2.0 if few else 1.3)


def medians(args, path, tokens):
    ours, theirs = [], []
    for _ in range(args.rounds):
        ours.append(qkv(args.qkv, path, tokens, threads=args.threads, only=("forward-last",), repeats=1)["forward-last"])
        theirs.append(llama(args.llama_bench, path, tokens, threads=args.threads, repeats=1))
    return statistics.median(ours), statistics.median(theirs)


def peak_memory(args, path, tokens):
    """MiB beyond the file's size, of a process that computes a pass."""
    text = output_of(bench_of(args.qkv), "-m", path, "-T", str(tokens), "--only", "memory", "--repeats", "1", "--json")
    return (json.loads(text)["models"][0]["measurements"]["memory"]["median"] - os.path.getsize(path)) / 2**20


def judge(ratio, most):
    return f"{ratio:6.2f}   at most {most:g}: {'holds' if ratio <= most else 'does not hold'}"


def compare(args, kind, path):
    for tokens in (int(t) for t in args.tokens.split(",")):
        ours, theirs = medians(args, path, tokens)
        print(f"{kind:10s}{tokens:6d}{ours:10.3f}{theirs:11.3f}   {judge(ours / theirs, bound(kind, tokens))}", flush=True)
    print(f"{kind:10s}memory beyond the file, 128 tokens: {peak_memory(args, path, 128):.0f} MiB, at most 150", flush=True)


def figure(args, path):
    """`figure modify` from the start of the process to the PNG, against one pass of as many tokens."""
    words = "The river runs past the old mill and under the stone bridge before it comes to the sea again today"
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(args.rounds):
            start = time.monotonic()
            output_of(args.qkv, "figure", "modify", "-m", path, "-p", words, "-o", os.path.join(scratch, "figure.png"))
            ours.append(time.monotonic() - start)
            theirs.append(llama(args.llama_bench, path, FIGURE_TOKENS, threads=args.threads, repeats=1))
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"figure modify, {FIGURE_TOKENS} tokens: {a:.3f} s, one pass of llama.cpp {b:.3f} s {judge(a / b, 2.5)}")


def read_options(parser):
    """Those that all comparisons of this kind have, too."""
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--real", help="a GGUF file in iq2_xxs")
    parser.add_argument("--models", help="directory that keeps the models with random weights")
    return parser.parse_args()


def compare_all(args, compare):
    """Makes a model of every type, compares, and removes it."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = args.models or scratch
        for kind in (k for k in args.types.split(",") if k):
            path = os.path.join(directory, f"{SHAPE}-{kind}.gguf")
            if not os.path.exists(path):
                output_of(bench_of(args.qkv), "--shape", SHAPE, "--type", kind, "--only", "load", "--repeats", "1",
                          "--keep", directory)
            compare(args, kind, path)
            if not args.models:
                os.remove(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("qkv")
    parser.add_argument("llama_bench")
    parser.add_argument("--types", default=",".join(k for k in FIRST + SECOND if k != "iq2_xxs"))
    parser.add_argument("--tokens", default="16,128,512")
    args = read_options(parser)
    print(f"{'type':10s}{'tokens':>6s}{'qkv':>10s}{'llama.cpp':>11s}   qkv / llama.cpp")
    if args.real:
        compare(args, "iq2_xxs", args.real)
        figure(args, args.real)
    compare_all(args, compare)


if __name__ == "__main__":
    main()
