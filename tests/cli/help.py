#!/usr/bin/env python3
"""What every command says about itself: its help, its manual page, its line in the overview.

How help is laid out is the case help_format's. Here every command is asked for what must be there: a summary, a
description, a sentence for every option.
"""
import os
import re
import shutil
import subprocess
import sys

QKV = os.environ["QKV"]
WIDTH = 80
OPTION = re.compile(r"  (?:-(?P<letter>\w), |    )--(?P<name>[a-z0-9-]+)(?: (?P<value>\S+))?(?P<text>  .*)?")
CONTINUED = " " * 26
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"]
PROGRAM_SECTIONS = [
    "NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "NOTATION", "REDUCTIONS", "SITES", "ENVIRONMENT", "EXIT STATUS",
]
problems = []


def check(holds, complaint):
    if not holds:
        problems.append(complaint)


def qkv(*words):
    """What is printed; a status but 0, and anything on standard error, is a problem."""
    done = subprocess.run([QKV, *words], capture_output=True, text=True)
    check(done.returncode == 0, f"qkv {' '.join(words)}: status {done.returncode}")
    check(done.stderr == "", f"qkv {' '.join(words)}: says {done.stderr!r}")
    return done.stdout


def read_options(lines):
    """The options that help lists, as (name, what is said about it)."""
    options = []
    for line in lines:
        found = OPTION.fullmatch(line)
        if found:
            options.append([found["name"], (found["text"] or "").strip()])
        elif options and line.startswith(CONTINUED):
            options[-1][1] = f"{options[-1][1]} {line.strip()}".strip()
        else:
            check(line in ("", "Common options:"), f"not the line of an option: {line!r}")
    return options


def check_width(name, lines):
    """Lines that begin with a space are examples, which stay as they are."""
    for line in lines:
        check(len(line) <= WIDTH or line.startswith(" "), f"{name}: {len(line)} columns: {line}")


def check_help(name, text):
    lines = text.splitlines()
    check(lines[0].startswith(f"Usage: qkv {name} "), f"{name}: help begins with {lines[0]!r}")
    common = lines.index("Common options:")
    start = lines.index("Options:") if "Options:" in lines else common
    check_width(name, lines[:start])
    check(all(len(line) <= WIDTH for line in lines[start:]), f"{name}: an option's help is wider than {WIDTH} columns")
    described = lines[lines.index("") + 1 : start]
    check(any(len(line.split()) >= 3 for line in described), f"{name}: no description")
    options = read_options(lines[start + 1 :])
    names = [option for option, _ in options]
    check(len(set(names)) == len(names), f"{name}: an option is listed twice")
    check(names[-3:] == ["quiet", "verbose", "help"], f"{name}: lacks the options that all have")
    for option, said in options:
        check(len(said.split()) >= 2, f"{name}: --{option} has no sentence of help")
    return names


def check_page(words, sections, options):
    page = qkv("help", "--man", *words)
    name = " ".join(words) or "qkv"
    check(re.findall(r"^\.SH (.*)$", page, re.M) == sections, f"{name}: other sections in its manual page")
    for option in options:
        check("\\-\\-" + option.replace("-", "\\-") + "\\fR" in page, f"{name}: no --{option} in its manual page")
    if shutil.which("groff"):
        read = subprocess.run(["groff", "-man", "-ww", "-z"], input=page, capture_output=True, text=True)
        check(read.returncode == 0 and not read.stderr, f"{name}: groff says {read.stderr!r}")


def check_command(name):
    words = name.split()
    text = qkv(*words, "--help")
    check(qkv("help", *words) == text and qkv(*words, "-h") == text, f"{name}: 'qkv help' says something else")
    check_page(words, SECTIONS, check_help(name, text))


def check_overview(names):
    overview = qkv("--help")
    check(qkv("help") == overview, "'qkv help' is not 'qkv --help'")
    listed = dict(re.findall(r"^  ([a-z0-9-]+(?: [a-z]+)?) {2,}(\S.*)$", overview, re.M))
    check(list(listed) == names, f"the overview has {list(listed)}, and the commands are {names}")
    for name, summary in listed.items():
        check(len(summary.split()) >= 2 and not summary.endswith("."), f"{name}: the summary {summary!r}")
    for group in {name.split()[0] for name in names if " " in name} - set(names):
        text = qkv(group, "--help")
        check(qkv("help", group) == text, f"'qkv help {group}' is not 'qkv {group} --help'")
        members = re.findall(rf"^  {group} ([a-z]+) ", text, re.M)
        wanted = [name.split()[1] for name in names if name.split()[0] == group]
        check(members == wanted, f"{group}: lists {members}")
    check_page([], PROGRAM_SECTIONS, [])


def check_notation():
    """Every site, operation and reduction that a message names is explained."""
    text = qkv("help", "notation")
    page = qkv("help", "--man")
    for words, noun in (
        (["--variant", "xyzzy@0=zero"], "sites"),
        (["--variant", "q@0=xyzzy"], "operations"),
        (["--capture", "pattern@0:xyzzy"], "reductions"),
    ):
        refused = subprocess.run([QKV, "run", "--tokens", "1,2", *words], capture_output=True, text=True)
        found = re.search(rf"{noun} are (.*)$", refused.stderr.strip())
        check(found, f"no list of {noun} in {refused.stderr!r}")
        for name in found[1].split(", ") if found else []:
            check(re.search(rf"^(  {name}\b|{name}:|.*, {name} )", text, re.M), f"{noun}: {name} is not explained")
            check(re.search(rf"(\\fB|\b){name}\b", page), f"{noun}: {name} is not in the manual page")
    check_width("notation", text.splitlines())


names = qkv("help", "--names").split("\n")[:-1]
check(len(names) > 20, f"few commands: {names}")
check_overview(names)
check_notation()
for each in names:
    check_command(each)
print("\n".join(problems))
sys.exit(1 if problems else 0)
