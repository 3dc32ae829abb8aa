#!/usr/bin/env python3
"""Runs cases of qkv serve, on loopback alone: run.py [CASE...]; all without a name.

Every function case_NAME in a file cases_*.py is one. QKV names the program.
"""
import glob
import importlib
import os
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

from explorer import Explorer  # noqa: E402


def find_cases():
    cases = {}
    for path in sorted(glob.glob(os.path.join(HERE, "cases_*.py"))):
        module = importlib.import_module(os.path.basename(path)[:-3])
        for name, function in vars(module).items():
            if name.startswith("case_"):
                cases[name[5:]] = function
    return cases


def run(name, function):
    explorer = Explorer()
    try:
        function(explorer)
        return 0
    except Exception:
        print("%s: not as expected" % name)
        traceback.print_exc(file=sys.stdout)
        return 1
    finally:
        explorer.end()


def main():
    cases = find_cases()
    wanted = sys.argv[1:] or list(cases)
    return max(run(name, cases[name]) for name in wanted)


sys.exit(main())
