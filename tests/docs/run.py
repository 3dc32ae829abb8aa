#!/usr/bin/env python3
"""Runs the commands that README.md and docs/*.md print, and compares what they say with what the page shows.

    run.py PAGE...              those that need the default model alone
    run.py --real PAGE...       all of them; skipped (77) where one of the models is not on this machine

What is run: in indented blocks of code, every line that begins with "qkv " or "$ ". A line that ends in a backslash
continues in the next. Below a "$ " command the page may show its output, up to the next "$ " or the end of the block;
blank lines count on neither side. "…" stands for anything, a line of it alone for any lines, and fractions may differ by
a hundredth of their size, since the last digits depend on the processor.

What is not run: fenced blocks (for synopses, C and Python), and commands that end in "# needs ..." with one of the
REASONS. Commands that name one of the MODELS are run by --real alone.

The commands of a page run one after the other in one scratch directory, which looks like the root of the project.
Environment: QKV, the program; SOURCE, the project's directory.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MODELS = ("stories15m", "tinyllama")
REASONS = ("a download", "a file of yours", "MPI", "minutes")
LINKS = ("recipes", "models", "docs", "examples")


class Command:
    def __init__(self, page, number, line, prompt):
        self.place = f"{page}:{number}"
        self.line = line
        self.shows_output = prompt
        self.expected = []

    def reason(self):
        """Why the page says that it cannot be run everywhere; None: it can."""
        match = re.search(r"# needs (.*)$", self.line)
        if match and match.group(1) not in REASONS:
            sys.exit(f"{self.place}: \"needs {match.group(1)}\" is none of the reasons: {', '.join(REASONS)}")
        return match and match.group(1)

    def needs_model(self):
        return next((name for name in MODELS if name in self.line), None)


def code_lines(page):
    """Lines of indented blocks with their numbers; None for all others. A blank line ends no block."""
    fenced = False
    for number, line in enumerate(page.read_text().split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
        yield number, line[4:] if not fenced and (line.startswith("    ") or not line) else None


def commands(page):
    found, current, continued = [], None, False
    for number, line in code_lines(page):
        if continued and line is not None:
            current.line = current.line[:-1] + " " + line.strip()
        elif line is None:
            current = None
        elif not line.strip():
            continue
        elif line.startswith("$ ") or (line.startswith("qkv ") and not (current and current.shows_output)):
            prompt = line.startswith("$ ")
            current = Command(page.name, number, line[2:] if prompt else line, prompt)
            found.append(current)
        elif current and current.shows_output:
            current.expected.append(line.rstrip())
        continued = current is not None and not current.expected and current.line.endswith("\\")
    return found


def same_word(wanted, word):
    """Fractions may differ a little, counts and everything else not."""
    if wanted == word:
        return True
    if re.fullmatch(r"\d+[,)]*", wanted) and re.fullmatch(r"\d+[,)]*", word):
        return False
    try:
        a, b = float(wanted.strip(",()")), float(word.strip(",()"))
    except ValueError:
        return False
    return abs(a - b) <= 0.01 * max(abs(a), abs(b)) or max(abs(a), abs(b)) < 1e-6


def same_line(wanted, line):
    a, b = wanted.split(), line.split()
    if "…" in wanted:
        return re.fullmatch(".*".join(map(re.escape, " ".join(a).split("…"))), " ".join(b)) is not None
    return len(a) == len(b) and all(map(same_word, a, b))


def same_output(wanted, lines):
    """Both are lists of lines; a wanted line of "…" alone stands for any number of them."""
    if not wanted:
        return not lines
    if wanted[0].strip() == "…":
        return any(same_output(wanted[1:], lines[i:]) for i in range(len(lines) + 1))
    return bool(lines) and same_line(wanted[0], lines[0]) and same_output(wanted[1:], lines[1:])


def environment(work, real):
    env = dict(os.environ, LC_ALL="C.UTF-8", PATH=f"{work}/bin:{os.environ['PATH']}")
    for name in ("QKV_MODEL", "QKV_RECIPES"):
        env.pop(name, None)
    if not real:
        env.update(HF_HUB_CACHE=f"{work}/hub", QKV_CACHE=f"{work}/own")
    return env


def run(command, work, env):
    done = subprocess.run(command.line, shell=True, cwd=work / "root", env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        print(f"{command.place}: status {done.returncode}: {command.line}\n{text}")
        return False
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    if command.expected and not same_output(command.expected, lines):
        print(f"{command.place}: {command.line}\nsays\n{text}\nand the page shows\n" + "\n".join(command.expected))
        return False
    return True


def make_root(work, source):
    (work / "root" / "build").mkdir(parents=True)
    (work / "bin").mkdir()
    for place in (work / "bin" / "qkv", work / "root" / "build" / "qkv"):
        place.symlink_to(os.environ["QKV"])
    for name in LINKS:
        (work / "root" / name).symlink_to(source / name)


def run_page(page, real, source):
    """Whether all that was run came out as the page says."""
    found = commands(page)
    if not found:
        print(f"{page.name} has no commands: is it laid out as tests/docs/run.py says?")
        return False
    with tempfile.TemporaryDirectory(prefix="qkv-docs-") as directory:
        work = Path(directory)
        make_root(work, source)
        env = environment(work, real)
        ran = left = 0
        good = True
        for command in found:
            if command.reason() or (command.needs_model() and not real):
                left += 1
                continue
            ran += 1
            good = run(command, work, env) and good
    print(f"{page.name}: {ran} commands run, {left} left out")
    return good


def missing_model(pages):
    wanted = {command.needs_model() for page in pages for command in commands(page)} - {None}
    for name in sorted(wanted):
        if subprocess.run([os.environ["QKV"], "info", "-m", name], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode != 0:
            return name
    return None


def main(arguments):
    real = arguments[:1] == ["--real"]
    source = Path(os.environ["SOURCE"])
    pages = [source / name for name in arguments[1 if real else 0:]]
    missing = missing_model(pages) if real else None
    if missing:
        print(f"skipped: {missing} is not on this machine (qkv pull {missing})")
        return 77
    results = [run_page(page, real, source) for page in pages]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
