"""Progress bars: tqdm's where it is installed, else a plain line on standard error."""
from __future__ import annotations

import sys
import time
from typing import Any, Optional

__all__ = ["shower"]


class _Plain:
    """One line that is written over, at most ten times a second."""

    def __init__(self) -> None:
        self.last, self.shown = 0.0, False

    def __call__(self, what: str, done: float, total: float) -> None:
        now = time.monotonic()
        if now - self.last < 0.1 and done < total:
            return
        self.last, self.shown = now, True
        of = f" of {total:.0f}" if total else ""
        print(f"\r{done:.0f}{of} {what}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.shown:
            print(file=sys.stderr)


class _Tqdm:
    def __init__(self, tqdm: Any) -> None:
        self.tqdm = tqdm
        self.bar: Any = None

    def __call__(self, what: str, done: float, total: float) -> None:
        if self.bar is None:
            self.bar = self.tqdm(
                total=total or None,
                unit=f" {what}",
                bar_format="{l_bar}{bar}| {n:.0f}/{total:.0f}{unit} [{elapsed}<{remaining}]" if total else None,
            )
        self.bar.n = done
        self.bar.refresh()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


def shower(progress: Any) -> Optional[Any]:
    """Where progress is reported: nowhere, to a bar, or to a function of yours, called with (what, done, total)."""
    if progress is None or progress is False:
        return None
    if progress is not True:
        if not callable(progress):
            raise TypeError(f"progress is True, False or a function (what, done, total), not {progress!r}")
        return progress
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Plain()
    return _Tqdm(tqdm)
