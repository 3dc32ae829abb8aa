"""Memory that runs out at one moment, or from one moment on: every command that writes something.

    run.py [--all | --each N | --seconds N] [CASE...]     SEED=N tries the same again

Each case is a command. failing_malloc.c is preloaded into it and denies one allocation, or that one and all that
follow. Such a run either gives what an undisturbed one gives, byte by byte, or it says one line, ends with status 1
and leaves no file but such as are complete, byte by byte: those that were written before. Results of a sweep
are kept after an error, because they can be resumed: then the same command, undisturbed, must complete them.

Which allocations are denied: for each stack of calls the first one that it made, in random order: N of each command
(24 where nothing is said), or as many as there is time for and two of each command at least, or all of them.

ggml and the libraries that draw read what they were denied: a run may end by a signal where the allocation was their
own, as the stack of calls tells. A temporary file may be left then, as after any such end, but none under the name that
was asked for. Cairo may also leave out a line or a letter and report success: such pictures are counted, not refused.

Environment: QKV, the program; MODELS, the directory with default.gguf; FAILING_MALLOC, the library.
"""
import argparse
import bisect
import concurrent.futures
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

RIVER = "The river runs to the sea."
NEXT = ["-p", "The river runs to the"]
HEAD = ["--layer", "2", "--head", "1"]
SWEEP = ["sweep", "-p", RIVER, "--layers", "0-1", "--heads", "0-1", "--epsilon", "0.5,1e-3", "--metrics", "sink,tv",
         "-t", "1"]
PATCH = ["patch", "--clean", "The river runs past the city", "--corrupt", "The church runs past the city",
         "--metric", "logit_diff: river/ church", "--layers", "0-1"]

CASES = {
    "run_safetensors": ["run", "-p", RIVER, "--variant", "q@3.h1=zero", "--capture", "pattern@3", "-o",
                        "out/a.safetensors"],
    "run_npz": ["run", "-p", RIVER, "--variant", "k@1=scale:0.5", "--capture", "z@1", "-o", "out/a.npz"],
    "run_json": ["run", "-p", RIVER, "--variant", "k@1=scale:0.5 + v@2=zero", "--capture", "logits[-1]", "-o",
                 "out/a.json"],
    "run_source": ["run", "-p", RIVER, "--source", "a=The road runs to the sea.", "--variant", "z@1=patch:a",
                   "--capture", "resid_post@2", "-o", "out/a.npz"],
    "run_table": ["run", "-p", RIVER, "--variant", "q@3=scale:0.1", "--capture", "pattern@3"],
    "run_set": ["run", "-p", RIVER, "--set-prompts", "prompts.txt", "--variant", "z@1=mean:set", "--capture", "z@2",
                "-o", "out/a.safetensors"],
    "next_csv": ["next", *NEXT, "--variant", "z@3.h1=zero", "--of", " sea, land", "--diff", " sea/ land", "-o",
                 "out/a.csv"],
    "next_json": ["next", *NEXT, "--variant", "z@3.h1=zero", "--of", " sea, land", "-o", "out/a.json"],
    "next_answer": ["next", *NEXT, "-q", "--answer", "wide sea", "--answer", "sea", "--diff", "sea/or"],
    "next_all": ["next", *NEXT, "--all", "--variant", "v@*=scale:0.5", "--json"],
    "measure_csv": ["measure", "-p", RIVER, "--variant", "q@3=scale:1e-3", "--layers", "3", "-o", "out/a.csv"],
    "measure_json": ["measure", "-p", RIVER, "--variant", "q@3=scale:1e-3", "--metrics", "sink,loss", "-o",
                     "out/a.json", "--json"],
    "measure_text": ["measure", "-p", RIVER, "--metrics", "sink,entropy"],
    "measure_answer": ["measure", *NEXT, "--metrics", "answer,loss", "--answer", " wide sea"],
    "figure_png": ["figure", "modify", "-p", RIVER, *HEAD, "-o", "out/a.png"],
    "figure_svg": ["figure", "mean", "-p", RIVER, *HEAD, "-o", "out/a.svg"],
    "figure_pdf": ["figure", "grid", "-p", RIVER, *HEAD, "--row", "Query=q@2=scale:0.5", "-o", "out/a.pdf"],
    "figure_html": ["figure", "rows", "-p", RIVER, "-o", "out/a.html"],
    "figure_md": ["figure", "modify", "-p", RIVER, *HEAD, "--report", "out/a.md"],
    "figure_json": ["figure", "modify", "-p", RIVER, *HEAD, "--report", "out/a.json"],
    "figure_data": ["figure", "modify", "-p", RIVER, *HEAD, "--data", "out/a.safetensors", "-o", "out/a.png"],
    "figure_heads": ["figure", "heads", "-p", RIVER, "-o", "out/a.png"],
    "sweep": [*SWEEP, "-o", "out/a.sqlite"],
    "sweep_export": ["sweep", "export", "s.sqlite", "-o", "out/a.csv"],
    "sweep_export_json": ["sweep", "export", "s.sqlite", "-o", "out/a.json"],
    "sweep_merge": ["sweep", "merge", "-o", "out/a.sqlite", "s1.sqlite", "s2.sqlite"],
    "plot_png": ["plot", "s.sqlite", "--metric", "tv", "-o", "out/a.png"],
    "plot_html": ["plot", "s.sqlite", "--metric", "tv", "--kind", "heatmap", "--epsilon", "1e-3", "-o", "out/a.html"],
    "plot_attention": ["plot", "s.sqlite", "--metric", "tv", "--kind", "heatmap", "--epsilon", "1e-3", "-m", "MODEL",
                    "-o", "out/a.html"],
    "patch_csv": [*PATCH, "-o", "out/a.csv"],
    "patch_sqlite": [*PATCH, "-o", "out/a.sqlite", "-t", "1"],
    "patch_png": [*PATCH, "--site", "z", "-o", "out/a.png"],
    "patch_paths": [*PATCH, "--receiver", "q@2.h1"],
    "patch_json": [*PATCH, "--site", "z", "--json"],
    "lens_png": ["lens", *NEXT, "--answer", " sea", "-o", "out/a.png"],
    "lens_json": ["lens", *NEXT, "--answer", " sea/ land", "--heads", "-o", "out/a.json"],
    "lens_html": ["lens", *NEXT, "-o", "out/a.html"],
    "compare": ["compare", "--edit", "q@3.h1=zero", "-p", RIVER, "-o", "out/a.csv", "-o", "out/a.json"],
    "weights_csv": ["weights", "ov", "--layers", "0", "--heads", "0", "-o", "out/a.csv"],
    "weights_json": ["weights", "composition", "--layers", "0-1", "-o", "out/a.json"],
    "roles_csv": ["roles", "-p", RIVER, "--length", "12", "--sequences", "1", "-o", "out/a.csv"],
    "roles_html": ["roles", "-p", RIVER, "--length", "12", "--sequences", "1", "-o", "out/a.html"],
    "recipe_sweep": ["recipe", "head-importance", "-p", RIVER, "-o", "out/a.sqlite", "-t", "1"],
    "effects": ["effects", "-p", RIVER, "--layers", "1", "--epsilon", "0.5,0.1", "-o", "out/a.png", "-o", "out/a.html", "-t", "1"],
    "recipe_study": ["recipe", "ships", *NEXT, "-o", "out/a.json"],
    "recipe_print": ["recipe", "head-importance", "--print"],
    "recipe_extract": ["recipe", "extract", "f.png"],
    "recipe_insert": ["recipe", "insert", "r.json", "bare.svg", "-o", "out/a.svg"],
    "recipe_copy": ["recipe", "copy", "f.png", "bare.svg", "-o", "out/a.svg"],
    "reproduce": ["reproduce", "f.png", "-o", "out/a.svg"],
    "reproduce_check": ["reproduce", "f.png", "--check"],
    "reproduce_chart": ["reproduce", "c.svg", "--results", "s.sqlite", "--check", "-o", "out/a.svg"],
    "convert": ["convert", "tiny.gguf", "-o", "out/a.gguf", "--type", "f16"],
    "convert_directory": ["convert", "hf", "-o", "out/a.gguf"],
    "generate": ["generate", *NEXT, "-n", "4", "--variant", "z@3.h1=zero", "-o", "out/a.jsonl"],
    "generate_text": ["generate", *NEXT, "-n", "4", "--temperature", "0.7"],
    "generate_json": ["generate", *NEXT, "-n", "4", "--json"],
    "chat": ["next", *NEXT, "--chat", "--template", "chat.jinja", "--show-prompt", "-o", "out/a.json"],
    "tokens": ["tokens", "--json", RIVER],
    "tokens_ids": ["tokens", "--json", "--ids", "1,20,30"],
    "info": ["info", "--json", "--hash"],
    "show": ["show", "r.safetensors", "--json"],
    "show_sweep": ["show", "s.sqlite", "--json"],
    "show_tensor": ["show", "r.safetensors", "--tensor", "v0/pattern.3"],
    "metrics": ["metrics", "--json"],
}


def environment(**more):
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("FAIL_", "QKV_", "LD_PRELOAD"))}
    model = os.path.join(os.environ["MODELS"], "default.gguf")
    for name in ("HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME"):  # other models would be looked at
        kept.pop(name, None)
    return {**kept, "HOME": "/nonexistent", "QKV_MODEL": model, "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1", **more}


def start(argv, folder, **more):
    argv = [environment()["QKV_MODEL"] if word == "MODEL" else word for word in argv]
    return subprocess.run([os.environ["QKV"], *argv], cwd=folder, env=environment(**more), stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=120, check=False)


def prepare(folder):
    """The files that some of the commands read."""
    vectors = os.environ["VECTORS"]
    shutil.copy(os.path.join(vectors, "llama", "model.gguf"), os.path.join(folder, "tiny.gguf"))
    shutil.copytree(os.path.join(vectors, "llama", "hf"), os.path.join(folder, "hf"))
    with open(os.path.join(folder, "prompts.txt"), "w", encoding="utf-8") as file:
        file.write("The road runs to the sea.\nThe river runs to the town.\n")
    with open(os.path.join(folder, "chat.jinja"), "w", encoding="utf-8") as file:
        file.write("{% for m in messages %}[{{ m.role }}] {{ m.content | trim }}\n{% endfor %}[assistant]")
    for argv in ([*SWEEP, "-o", "s.sqlite"],
                 [*SWEEP, "--shard", "1/2", "-o", "s1.sqlite"],
                 [*SWEEP, "--shard", "2/2", "-o", "s2.sqlite"],
                 ["plot", "s.sqlite", "--metric", "tv", "-o", "c.svg"],
                 ["figure", "modify", "-p", RIVER, *HEAD, "-o", "f.png", "-o", "bare.svg", "--report", "r.json"],
                 ["recipe", "extract", "f.png", "-o", "r.json"],
                 ["run", "-p", RIVER, "--variant", "q@3.h1=zero", "--capture", "pattern@3", "-o", "r.safetensors"]):
        done = start(argv, folder)
        if done.returncode:
            sys.exit("memory: %s: %s" % (" ".join(argv), done.stderr.decode()))


def read(path):
    """What a file says; of results, all tables but when they were begun."""
    if not path.endswith(".sqlite"):
        with open(path, "rb") as file:
            return file.read()
    base = sqlite3.connect(path)
    try:
        return sorted(line for line in base.iterdump() if "'created'" not in line)
    finally:
        base.close()


def outputs(folder):
    out = os.path.join(folder, "out")
    return {name: read(os.path.join(out, name)) for name in sorted(os.listdir(out))}


def clear(folder):
    shutil.rmtree(os.path.join(folder, "out"), ignore_errors=True)
    os.mkdir(os.path.join(folder, "out"))


class Symbols:
    """Names of the program's functions."""
    def __init__(self, program):
        lines = subprocess.run(["nm", "--defined-only", program], capture_output=True, check=True).stdout.split(b"\n")
        words = (line.decode().split() for line in lines)
        self.all = sorted((int(w[0], 16), w[2]) for w in words if len(w) == 3 and w[1] in "tTwW")

    def name(self, offset):
        return self.all[max(bisect.bisect_right(self.all, (offset, "~")) - 1, 0)][1]

    def stack(self, path):
        """The functions that a file of FAIL_STACK names, innermost first."""
        found = []
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                frame = re.match(r"(.*)\((.*)\+(0x[0-9a-f]+)\)", line)
                if frame and os.path.basename(frame[1]) == os.path.basename(os.environ["QKV"]):
                    found.append(self.name(int(frame[3], 16) - 1))
                elif frame:
                    found.append(os.path.basename(frame[1]).split(".so")[0])
        return found


DRAWING = ("libcairo", "libpango", "libfontconfig", "libfreetype", "libharfbuzz", "libpixman")


def is_of_drawing(stack):
    """Is it a library that draws that was denied memory?"""
    return bool(stack) and next((name for name in stack if name != "libc"), "").startswith(DRAWING)


def is_of_others(stack):
    """Is it a library that draws that was denied memory, or ggml, or what C++ makes before main?"""
    if is_of_drawing(stack) or any("__static_initialization" in name for name in stack):
        return True
    own = [name for name in stack if not name.startswith(("lib", "_ZNSt", "_ZSt", "_ZNKSt"))]
    return bool(own) and ("ggml" in own[0] or "gguf" in own[0])


def judge_error(case, done):
    """What is wrong with how a run ended that did not succeed."""
    names = os.listdir(os.path.join(case.folder, "out"))
    crashed = done.returncode < 0 and is_of_others(case.stack())
    kept = [name for name in names if ".sqlite" in name]
    for name in names:
        is_whole = name in case.files and name not in kept and \
            read(os.path.join(case.folder, "out", name)) == case.files[name]
        if not (is_whole or name in kept or (crashed and name not in case.files)):
            return "leaves %s" % names
    if crashed:
        return None
    if done.returncode != 1:
        return "exit status %d" % done.returncode
    said = [line for line in done.stderr.splitlines() if line.startswith(b"qkv: ")]
    if len([line for line in said if b"Assertion" not in line]) != 1:  # jansson has one of its own
        return "not one line of error"
    return judge_resumed(case) if kept else None


def judge_resumed(case):
    done = start(case.argv, case.folder)
    if done.returncode:
        return "cannot be resumed: %s" % done.stderr.decode(errors="replace")
    return None if outputs(case.folder) == case.files else "the resumed file is another one"


class Case:
    symbols = None  # of the program

    def __init__(self, name, argv, prepared):
        self.name, self.argv, self.prepared, self.n_lost = name, argv, prepared, 0
        self.folder = tempfile.mkdtemp(prefix="memory-")
        shutil.copytree(prepared, self.folder, dirs_exist_ok=True)
        clear(self.folder)
        log = os.path.join(self.folder, "log")
        done = start(argv, self.folder, LD_PRELOAD=os.environ["FAILING_MALLOC"], FAIL_LOG=log)
        if done.returncode:
            raise SystemExit("memory: %s: %s" % (name, done.stderr.decode()))
        self.stdout, self.stderr, self.files = done.stdout, done.stderr, outputs(self.folder)
        with open(log, encoding="ascii") as file:
            self.moments = [int(line) for line in file]
        if not self.moments:
            raise SystemExit("memory: %s: no allocation was seen" % name)

    def judge(self, moment, lasts):
        clear(self.folder)
        more = {"FAIL_ALL": "1"} if lasts else {}
        try:
            done = start(self.argv, self.folder, LD_PRELOAD=os.environ["FAILING_MALLOC"], FAIL_AT=str(moment),
                         FAIL_STACK=os.path.join(self.folder, "stack"), **more)
        except subprocess.TimeoutExpired:
            return "does not end"
        if done.returncode:
            wrong = judge_error(self, done)
        else:
            wrong = self.judge_success(done)
        return wrong and "%s\n    %s\n    %s" % (wrong, " < ".join(self.stack()[:10]),
                                                done.stderr.decode(errors="replace").strip()[-400:])

    def judge_success(self, done):
        files = outputs(self.folder)
        if done.stdout != self.stdout:
            return "succeeds and prints something else"
        if files == self.files:
            return None
        others = [name for name in set(files) | set(self.files) if files.get(name) != self.files.get(name)]
        if is_of_drawing(self.stack()) and all(name.endswith((".png", ".svg", ".pdf", ".html")) for name in others):
            self.n_lost += 1
            return None
        return "succeeds and writes something else"

    def stack(self):
        return Case.symbols.stack(os.path.join(self.folder, "stack"))


def work(case, moments, until):
    """How many runs there were, and what was wrong with some."""
    found, n_runs = [], 0
    for moment, lasts in moments:
        if until and n_runs >= 2 and time.monotonic() > until:
            break
        complaint = case.judge(moment, lasts)
        n_runs += 1
        if complaint:
            found.append("memory: %s, allocation %d%s: %s" %
                         (case.name, moment, " and all later ones" if lasts else "", complaint))
    return n_runs, found


def choose(case, rng, how):
    """The allocations to deny, and whether those that follow are, too."""
    if how.all:
        return [(n, lasts) for n in case.moments for lasts in (False, True)]
    chosen = [(n, rng.random() < 0.3) for n in rng.sample(case.moments, len(case.moments))]
    return chosen if how.seconds else chosen[:how.each]


def try_all(names, rng, how):
    prepared = tempfile.mkdtemp(prefix="memory-")
    begun, workers = time.monotonic(), len(os.sched_getaffinity(0))
    cases, wrong, n_runs = [], 0, 0
    try:
        prepare(prepared)
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            cases = list(pool.map(lambda name: Case(name, CASES[name], prepared), names))
            left = max((how.seconds or 0) - (time.monotonic() - begun), 0) * workers
            plans = [choose(case, rng, how) for case in cases]

            def turn(i):
                return work(cases[i], plans[i], how.seconds and time.monotonic() + left / len(cases))

            for done, found in pool.map(turn, range(len(cases))):
                n_runs += done
                wrong += len(found)
                for line in found:
                    print(line, flush=True)
    finally:
        for case in cases:
            shutil.rmtree(case.folder, ignore_errors=True)
        shutil.rmtree(prepared, ignore_errors=True)
    print("memory: %d of %d runs were wrong, of %d commands, in %.0f s; pictures that cairo left a part out of: %d" %
          (wrong, n_runs, len(cases), time.monotonic() - begun, sum(case.n_lost for case in cases)))
    return 1 if wrong or not n_runs else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--each", type=int, default=24)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    how = parser.parse_args()
    seed = int(os.environ.get("SEED") or random.randrange(1 << 30))
    print("memory: seed %d" % seed)
    Case.symbols = Symbols(os.environ["QKV"])
    return try_all(how.cases, random.Random(seed), how)


sys.exit(main())
