"""Runs cases: every function case_NAME in a file cases_*.py of a folder is one."""
import glob
import importlib
import os
import sys
import traceback


class Skipped(Exception):
    """Raised by a case that cannot be run here."""


def find_cases(folder):
    cases = {}
    for path in sorted(glob.glob(os.path.join(folder, "cases_*.py"))):
        module = importlib.import_module(os.path.basename(path)[:-3])
        for name, function in vars(module).items():
            if name.startswith("case_"):
                cases[name[5:]] = function
    return cases


def run_case(name, function, make):
    """`make()` gives what the case is called with; its end() is called afterwards."""
    case = make()
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


def run_cases(folder, make):
    """Those that the command line names, or all; returns the exit status."""
    cases = find_cases(folder)
    wanted = sys.argv[1:] or list(cases)
    results = [run_case(name, cases[name], make) for name in wanted]
    return 1 if 1 in results else max(results)
