"""Files that `qkv run -o` or `Result.save` wrote, as the results they were."""
from __future__ import annotations

import json
import os
from typing import Any, Optional, Union

import numpy as np

from ._core import Error, check, encoded, ffi, lib, new_error, new_struct, text_of, wrong
from .results import Captured, EditReport, Key, Result, view

__all__ = ["load"]

_STORED = {"F32": "<f4", "F64": "<f8"}


class FileStore:
    """A file of tensors, mapped; arrays lie where the file has them."""

    def __init__(self, path: str) -> None:
        out, err = ffi.new("qkv_store_reader **"), new_error()
        check(lib.qkv_store_reader_open(out, encoded(os.fsencode(path)), err), err)
        self.path = path
        self.pointer = ffi.gc(out[0], lib.qkv_store_reader_close)
        self._about: dict[str, Any] = json.loads(text_of(lib.qkv_store_reader_metadata(self.pointer)))
        for key in [k for k in self._about if k.startswith("side.")]:
            self._about[key] = int(self._about[key])  # safetensors hold nothing but texts
        if not isinstance(self._about.get("tensors"), dict) or not isinstance(self._about.get("tokens"), list):
            raise wrong(
                f"{path} holds an array alone: read it with numpy.load"
                if path.endswith(".npy")
                else f"{path} was not written by qkv run: it does not say what its tensors are"
            )
        self.tokens = np.array(self._about["tokens"], dtype=np.int32)
        self.tokens.flags.writeable = False
        self.token_strings = [str(s) for s in self._about.get("token_strings", self._about["tokens"])]
        self.prompt: Optional[str] = self._about.get("prompt")
        self.captures = list(self._about.get("captures", []))
        self.n_variants = len(self._about.get("edits", [[]]))
        self._places = self._find_places()
        self.n_layer = None  # of the model: the file does not say

    def _find_places(self) -> dict[tuple[int, Key], int]:
        item, index, places = new_struct("store_item"), 0, {}
        while lib.qkv_store_reader_item(self.pointer, index, item):
            about = self._about["tensors"].get(text_of(item.name))
            if about is not None:
                key = Key(about["site"], about.get("layer"), about.get("reduction", ""))
                places[int(about["variant"]), key] = index
            index += 1
        return places

    @property
    def logits_tokens(self) -> list[int]:
        if not any(key.site == "logits" for _, key in self._places):
            return []
        return list(self._about.get("logits_tokens", range(len(self.tokens))))

    def edits_text(self, variant: int) -> str:
        return str(self._about.get(f"variant.{variant}", ""))

    def get(self, variant: int, key: Key) -> Optional[Captured]:
        index = self._places.get((variant, key))
        if index is None:
            return None
        item = new_struct("store_item")
        lib.qkv_store_reader_item(self.pointer, index, item)
        about = self._about["tensors"][text_of(item.name)]
        heads = [str(h) for h in about.get("heads", [])]
        kind, channels = heads[0][0] if heads else "", tuple(int(c) for c in about.get("channels", []))
        return Captured(self._array(index, item), tuple(int(h[1:]) for h in heads), kind, channels)

    def _array(self, index: int, item: Any) -> Any:
        shape = tuple(item.shape[i] for i in range(item.n_dims))
        kind = _STORED.get(text_of(item.type))
        data = lib.qkv_store_reader_data(self.pointer, index)
        if kind is None:
            raise Error(lib.QKV_ERR_UNSUPPORTED, f"{self.path}: tensors of type {text_of(item.type)} are not results")
        array = view(data, shape, self.pointer, kind)
        if kind == "<f4":
            return array
        array = array.astype(np.float32)  # JSON, whose numbers are those of F32 written out
        array.flags.writeable = False
        return array

    def keys(self, variant: int) -> list[Key]:
        found = [key for number, key in self._places if number == variant]
        return sorted(found, key=lambda k: (k.layer is None, k.layer or 0, k.site, k.reduction))

    def reports(self, variant: int) -> list[EditReport]:
        texts = self._about.get("edits", [[]])[variant]
        changed = self._about.get(f"edits_changed.{variant}", [None] * len(texts))
        selected = self._about.get(f"edits_selected.{variant}", [0] * len(texts))
        return [EditReport(*report) for report in zip(texts, changed, selected)]

    def stats(self) -> dict[str, float]:
        return {}

    def metadata(self) -> dict[str, Any]:
        return self._about

    def save(self, path: str) -> None:
        raise wrong(f"this result was read from {self.path}: copy that file")


def load(path: Union[str, "os.PathLike[str]"]) -> Result:
    """A result that `qkv run -o` or `Result.save` wrote: .safetensors, .npz or .json.

    >>> import os, qkv, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "out.npz")
    >>> qkv.open().run("The river runs.", edits="q@3.h1=zero", capture="pattern@3").save(path)
    >>> r = qkv.load(path)
    >>> r
    <qkv.Result: 2 variants of 6 tokens, capture pattern@3>
    >>> r.prompt, r[1].changed
    ('The river runs.', {'q@3.h1=zero': 192})
    """
    return Result(FileStore(os.fspath(path)))
