#!/usr/bin/env python3
"""Runs cases of qkv pull against a server that plays the hub: run.py [CASE...]; all without a name.

Every function case_NAME in a file cases_*.py is one. QKV names the program. Status 77: skipped.
"""
import glob
import importlib
import os
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

from case import Case, Skipped  # noqa: E402


def find_cases():
    cases = {}
    for path in sorted(glob.glob(os.path.join(HERE, "cases_*.py"))):
        module = importlib.import_module(os.path.basename(path)[:-3])
        for name, function in vars(module).items():
            if name.startswith("case_"):
                cases[name[5:]] = function
    return cases


def run(name, function):
    case = Case()
    try:
        function(case)
        return 0
    except Skipped as reason:
        print("%s: skipped: %s" % (name, reason))
        return 77
    except Exception:
        print("%s: not as expected" % name)
        traceback.print_exc(file=sys.stdout)
        return 1
    finally:
        case.end()


def main():
    cases = find_cases()
    wanted = sys.argv[1:] or list(cases)
    results = [run(name, cases[name]) for name in wanted]
    return 1 if 1 in results else max(results)


sys.exit(main())
