"""Weights of a model, by name and layer."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, NamedTuple, Optional

import numpy as np

from . import selections
from ._core import Error, MissingError, check, encoded, ffi, lib, new_error, new_struct, text_of

if TYPE_CHECKING:
    from .model import Model

__all__ = ["Weight", "Weights"]


class Weight(NamedTuple):
    """What a weight is; `weights[weight]` reads it.

    >>> import qkv
    >>> w = qkv.open().weights
    >>> [weight.name for weight in w if weight.layer is None]
    ['token_embd', 'output_norm', 'output']
    """

    name: str
    layer: Optional[int]
    shape: tuple[int, ...]
    type: str
    tensor: str


def _describe(struct: Any) -> Weight:
    return Weight(
        text_of(struct.name),
        None if struct.layer < 0 else int(struct.layer),
        tuple(struct.shape[i] for i in range(struct.n_dims)),
        text_of(struct.type),
        text_of(struct.tensor),
    )


class Weights:
    """`m.weights["q", 3]` is a matrix of single precision with a row for every output, whatever it is stored as.

    Every model has q, k, v and o; their rows stand in the order of captures. Arrays are made anew each time, and are
    yours to change.

    >>> import qkv
    >>> w = qkv.open().weights
    >>> w
    <qkv.Weights: 6 layers of attn_norm, q, k, v, o, ffn_norm, gate, up, down; token_embd, output_norm, output>
    >>> w["down", -1].shape, w["output_norm"].shape
    ((128, 384), (128,))
    """

    def __init__(self, model: "Model") -> None:
        self._model = model

    def __iter__(self) -> Iterator[Weight]:
        """All of them, those of no layer first."""
        struct, index = new_struct("weight"), 0
        while lib.qkv_weight_get(self._model._pointer, index, struct):
            index += 1
            yield _describe(struct)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _place(self, key: Any) -> tuple[bytes, int]:
        if isinstance(key, Weight):
            key = (key.name, key.layer)
        name, layer = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
        if not isinstance(name, str):
            raise TypeError('index with a name and a layer: weights["q", 3], or weights["token_embd"]')
        if layer is None:
            return encoded(name), -1
        if not hasattr(layer, "__index__") or selections.is_truth(layer):
            raise TypeError(f"a layer is one whole number, not {layer!r}")
        number = int(layer.__index__())
        if number < 0:
            number += self._model.info.n_layer
            if number < 0:
                raise MissingError(f"layer {layer} is out of range; the model has {self._model.info.n_layer}")
        return encoded(name), number

    def _find(self, key: Any) -> tuple[bytes, int, Any]:
        name, layer = self._place(key)
        struct, err = new_struct("weight"), new_error()
        status = lib.qkv_weight_find(self._model._pointer, name, layer, struct, err)
        if status == lib.QKV_ERR_ARGUMENT:
            raise MissingError(text_of(err.message))
        check(status, err)
        return name, layer, struct

    def about(self, name: str, layer: Optional[int] = None) -> Weight:
        """What a weight is, without reading it.

        >>> import qkv
        >>> qkv.open().weights.about("q", 3).type
        'f16'
        """
        return _describe(self._find(name if layer is None else (name, layer))[2])

    def __getitem__(self, key: Any) -> Any:
        name, layer, struct = self._find(key)
        array = np.empty(tuple(struct.shape[i] for i in range(struct.n_dims)), dtype=np.float32)
        self._read(name, layer, 0, struct.n_rows, array)
        return array

    def rows(self, name: str, layer: Optional[int] = None, *, start: int = 0, stop: Optional[int] = None) -> Any:
        """Some rows of a matrix: (rows, width).

        >>> import qkv
        >>> qkv.open().weights.rows("token_embd", start=10, stop=12).shape
        (2, 128)
        """
        _, number, struct = self._find(name if layer is None else (name, layer))
        last = None if stop is None else selections.number(stop, "stop")
        first, end, _ = slice(selections.number(start, "start"), last).indices(struct.n_rows)
        array = np.empty((max(0, end - first), struct.width), dtype=np.float32)
        self._read(encoded(name), number, first, len(array), array)
        return array

    def _read(self, name: bytes, layer: int, first: int, n: int, array: Any) -> None:
        err = new_error()
        to = ffi.from_buffer("float[]", array, require_writable=True) if array.size else ffi.NULL
        check(lib.qkv_weight_read(self._model._pointer, name, layer, first, n, to, err), err)

    def __contains__(self, key: Any) -> bool:
        try:
            self._find(key)
            return True
        except Error:
            return False

    def __repr__(self) -> str:
        everything = list(self)
        of_layers = list(dict.fromkeys(w.name for w in everything if w.layer is not None))
        others = ", ".join(w.name for w in everything if w.layer is None)
        return f"<qkv.Weights: {self._model.info.n_layer} layers of {', '.join(of_layers)}; {others}>"
