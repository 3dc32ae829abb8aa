#!/usr/bin/env python3
"""Runs cases of qkv pull against a server that plays the hub: run.py [CASE...]; all without a name.

Every function case_NAME in a file cases_*.py is one. QKV names the program. Status 77: skipped.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
sys.dont_write_bytecode = True

from case import Case  # noqa: E402
from case_runner import run_cases  # noqa: E402

sys.exit(run_cases(HERE, Case))
