"""Loads the compiled module, and with it the library.

libgomp reads how long waiting threads spin when it is loaded. Its default, milliseconds at every barrier, makes a run
many times slower when another process needs a core, so it is told a short time meanwhile, as the program does. Who has
set one of the variables, or has loaded libgomp before, is left alone.
"""
from __future__ import annotations

import os

_own = not os.environ.get("OMP_WAIT_POLICY") and not os.environ.get("GOMP_SPINCOUNT")
if _own:
    os.environ["GOMP_SPINCOUNT"] = "1000"
try:
    from ._native import ffi, lib
finally:
    if _own:
        del os.environ["GOMP_SPINCOUNT"]

__all__ = ["ffi", "lib"]
