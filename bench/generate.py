#!/usr/bin/env python3
"""One more token of a text, qkv and llama.cpp in turn.

usage: generate.py QKV LLAMA_BENCH [--types f32,q8_0] [--tokens 32] [--rounds 5] [--threads N] [--real FILE.gguf]
                   [--models DIR]

Models as of quantised.py. Every round runs both programs once, one after the other; the table has medians over rounds, in
seconds per token: qkv's for one text and for a text with three variants, and llama-bench's (-n).
"""
import argparse, json, statistics

from peers import output_of, qkv
from quantised import compare_all, judge, read_options

# Where weights are as they are multiplied, reading them is all; quantised ones are turned into F32 here.
PLAIN = ("f32", "f16", "bf16")


def llama(args, path):
    report = json.loads(output_of(args.llama_bench, "-m", path, "-p", "0", "-n", str(args.tokens), "-r", "1", "-fa", "0",
                                  "-t", str(args.threads), "-o", "json"))
    return report[0]["avg_ns"] * 1e-9 / args.tokens


def compare(args, kind, path):
    one, four, theirs = [], [], []
    for _ in range(args.rounds):
        ours = qkv(args.qkv, path, args.tokens, threads=args.threads, only=("token", "token-4"), repeats=1)
        one.append(ours["token"])
        four.append(ours["token-4"])
        theirs.append(llama(args, path))
    a, b, c = statistics.median(one), statistics.median(four), statistics.median(theirs)
    print(f"{kind:10s}{a:10.4f}{b:10.4f}{c:11.4f}   {judge(a / c, 1.2 if kind in PLAIN else 3.0)}", flush=True)
    print(f"{'':10s}four texts to one: {judge(b / a, 1.5)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("qkv")
    parser.add_argument("llama_bench")
    parser.add_argument("--types", default="f32,f16,bf16,q8_0,q6_K,q4_K")
    parser.add_argument("--tokens", type=int, default=32)
    args = read_options(parser)
    print(f"{'type':10s}{'qkv':>10s}{'4 texts':>10s}{'llama.cpp':>11s}   qkv / llama.cpp")
    if args.real:
        compare(args, "iq2_xxs", args.real)
    compare_all(args, compare)


if __name__ == "__main__":
    main()
