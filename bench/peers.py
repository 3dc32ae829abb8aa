#!/usr/bin/env python3
"""Plain forward passes of qkv, llama.cpp and PyTorch, interleaved in one run.

usage: peers.py QKV [LLAMA_BENCH] [--tokens 128,512] [--rounds 5] [--models DIR]

Every round runs each program once on each shape, one after the other, so that whatever else the machine does falls on
all of them alike. Each process warms up by itself and takes three passes. F32 weights, all cores. What is not
there (llama-bench, the Python package torch) is said and left out.

PyTorch computes all logits, llama-bench those of the last token: each is compared with the same of qkv.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SHAPES = ("gpt2-124m", "smollm-135m")


def bench_of(program):
    """The program qkv-bench, which lies beside qkv."""
    return os.path.join(os.path.dirname(os.path.abspath(program)), "qkv-bench")


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def qkv(program, model, tokens, threads=0, only=("forward", "forward-last"), repeats=3):
    report = json.loads(output_of(bench_of(program), "-m", model, "-T", str(tokens), "--only", ",".join(only),
                                  "-t", str(threads), "--repeats", str(repeats), "--json"))
    measured = report["models"][0]["measurements"]
    return {name: measured[name]["median"] for name in only}


def llama(program, model, tokens, threads=0, repeats=3):
    report = json.loads(output_of(program, "-m", model, "-p", str(tokens), "-n", "0", "-r", str(repeats), "-fa", "0",
                                  "-t", str(threads or os.cpu_count()), "-b", str(tokens), "-ub", str(tokens),
                                  "-o", "json"))
    return report[0]["avg_ns"] * 1e-9


def torch(tokens):
    text = output_of(sys.executable, os.path.join(HERE, "torch_forward.py"), str(tokens), "3")
    return {line.split(":")[0]: float(line.split()[-2]) * 1e-3 for line in text.splitlines()}


def has_torch():
    return subprocess.run([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0


def measure(args, models, tokens, with_torch):
    samples = {}
    for _ in range(args.rounds):
        peer = torch(tokens) if with_torch else {}
        for shape in SHAPES:
            ours = qkv(args.qkv, models[shape], tokens)
            rows = {"qkv, all logits": ours["forward"], "qkv, last logits": ours["forward-last"]}
            if args.llama_bench:
                rows["llama.cpp, last logits"] = llama(args.llama_bench, models[shape], tokens)
            if with_torch:
                rows["PyTorch, all logits"] = peer[shape]
            for name, seconds in rows.items():
                samples.setdefault((shape, name), []).append(seconds)
    return {key: statistics.median(values) for key, values in samples.items()}


def report(medians, tokens):
    for shape in SHAPES:
        print(f"{shape}, {tokens} tokens, medians")
        rows = {name: seconds for (s, name), seconds in medians.items() if s == shape}
        for name, seconds in rows.items():
            print(f"  {name:24s}{1e3 * seconds:9.1f} ms")
        for ours, theirs, most in (("qkv, all logits", "PyTorch, all logits", 1.0),
                                   ("qkv, last logits", "llama.cpp, last logits", 0.5)):
            if theirs not in rows:
                continue
            ratio = rows[ours] / rows[theirs]
            print(f"  {'qkv / ' + theirs.split(',')[0]:24s}{ratio:9.2f}   at most {most:g}: "
                  f"{'holds' if ratio <= most else 'does not hold'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("qkv")
    parser.add_argument("llama_bench", nargs="?")
    parser.add_argument("--tokens", default="128,512")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", help="directory that keeps the models with random weights")
    args = parser.parse_args()
    with_torch = has_torch()
    if not with_torch:
        print("PyTorch is not here (Debian's package is python3-torch): not compared", file=sys.stderr)
    if not args.llama_bench:
        print("llama-bench is not here: llama.cpp is not compared", file=sys.stderr)
    with tempfile.TemporaryDirectory() as scratch:
        directory = args.models or scratch
        models = {shape: os.path.join(directory, f"{shape}-f32.gguf") for shape in SHAPES}
        for shape in SHAPES:
            if not os.path.exists(models[shape]):
                output_of(bench_of(args.qkv), "--shape", shape, "--only", "load", "--repeats", "1", "--keep", directory)
        for tokens in (int(t) for t in args.tokens.split(",")):
            report(measure(args, models, tokens, with_torch), tokens)


if __name__ == "__main__":
    main()
