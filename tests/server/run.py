#!/usr/bin/env python3
"""Runs cases of qkv serve, on loopback alone: run.py [CASE...]; all without a name.

Every function case_NAME in a file cases_*.py is one. QKV names the program.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
sys.dont_write_bytecode = True

from case_runner import run_cases  # noqa: E402
from explorer import Explorer  # noqa: E402

sys.exit(run_cases(HERE, Explorer))
