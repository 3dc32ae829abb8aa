"""Warnings: what the program prints as one."""
from __future__ import annotations

import os
import sys
import warnings
from typing import Iterable, Mapping, Optional

__all__ = ["Notice"]

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Notice(UserWarning):
    """Something was done and may not be what was meant: an edit that nothing depends on, a figure that needs a word.

    >>> import qkv, warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     r = qkv.open().run("The river runs.", edits="q@5=zero", capture="pattern@3")
    >>> print(caught[0].message)
    q@5=zero (v1) was not computed: nothing that is captured depends on it
    """


def notice(text: str) -> None:
    """Warns about the line that called the package."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_HERE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, Notice, stacklevel=level)


def notice_idle(changed: Iterable[Mapping[str, Optional[int]]], looked_at: str = "captured") -> None:
    """Of edits that were not computed. One that changes no value, as a patch of equal tokens, has a count of 0."""
    for variant, edits in enumerate(changed):
        for text, count in edits.items():
            if count is None:
                notice(f"{text} (v{variant}) was not computed: nothing that is {looked_at} depends on it")
