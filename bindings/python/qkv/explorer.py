"""The explorer: its live page in a notebook."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from ._core import Strings, check, ffi, lib, new_error, new_struct, text_of

if TYPE_CHECKING:
    from .model import Model

__all__ = ["Explorer"]


class Explorer:
    """The live page of the explorer, served on this machine as long as the object is there."""

    def __init__(self, model: "Model", text: Optional[str], height: int, port: int) -> None:
        raise NotImplementedError
