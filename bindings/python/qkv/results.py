"""Results: what a run captured, as arrays that lie where C has put them.

An array here is a view of the result's own memory, read-only, and keeps the result alive; `.copy()` makes one that can
be changed. The same objects show a file that `qkv run -o` or `Result.save` wrote (`qkv.load`).
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, NamedTuple, Optional, Union, overload

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from . import selections
from ._core import MissingError, check, encoded, ffi, lib, new_error, new_struct, text_of, wrong
from .hooks import translated
from .names import REDUCTIONS, SITES, WITHOUT_LAYER

if TYPE_CHECKING:
    import os

    from .model import Model, Plan

__all__ = ["Result", "Variant", "Tensor"]

Array = Any  # np.ndarray, whose type parameters differ between versions of numpy

_SITE_NAMES = list(SITES)
_REDUCTION_NAMES = list(REDUCTIONS)


class _View:
    """Memory of C as numpy asks for it; the array's base, which keeps the owner alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, address: int, shape: tuple[int, ...], typestr: str, owner: Any) -> None:
        self.__array_interface__ = {"data": (address, True), "shape": shape, "typestr": typestr, "version": 3}
        self.owner = owner


def view(pointer: Any, shape: tuple[int, ...], owner: Any, typestr: str = "<f4") -> Array:
    """A read-only array over memory of C that `owner` keeps."""
    return np.asarray(_View(int(ffi.cast("uintptr_t", pointer)), shape, typestr, owner))


class Key(NamedTuple):
    """What a captured tensor is."""

    site: str
    layer: Optional[int]
    reduction: str

    def __str__(self) -> str:
        at = "" if self.layer is None else f"@{self.layer}"
        return f"{self.site}{at}" + (f":{self.reduction}" if self.reduction else "")


class Captured(NamedTuple):
    """A captured tensor: the array, and which heads and channels it has."""

    array: Array
    heads: tuple[int, ...]
    head_kind: str  # "h", "g" or ""
    channels: tuple[int, ...] = ()  # where the capture named some
    n_heads: Optional[int] = None  # of that kind in the model; None: not known


class EditReport(NamedTuple):
    """What became of an edit."""

    text: str
    changed: Optional[int]  # None: nothing that was captured depends on it
    selected: int


# ---- where tensors come from ----


class RunStore:
    """A result of C."""

    def __init__(self, model: "Model", pointer: Any, plan: "Plan") -> None:
        self.model, self.plan = model, plan
        self.pointer: Any = pointer
        self.n_variants = int(lib.qkv_result_n_variants(pointer))
        self.n_layer: Optional[int] = model.info.n_layer
        n = ffi.new("size_t *")
        ids = lib.qkv_plan_tokens(plan.pointer, n)
        self.tokens = np.frombuffer(ffi.buffer(ids, n[0] * 4), dtype=np.int32).copy()
        self.tokens.flags.writeable = False
        self._strings: Optional[list[str]] = None

    @property
    def token_strings(self) -> list[str]:
        if self._strings is None:
            if self.model.info.tokenizer == "none":
                self._strings = [str(i) for i in self.tokens.tolist()]
            else:
                self._strings = [self.model.token_text(i) for i in self.tokens.tolist()]
        return self._strings

    @property
    def prompt(self) -> Optional[str]:
        n = ffi.new("size_t *")
        text = lib.qkv_plan_prompt(self.plan.pointer, n)
        return None if text == ffi.NULL else bytes(ffi.buffer(text, n[0])).decode("utf-8", "surrogateescape")

    @property
    def captures(self) -> list[str]:
        found: list[str] = []
        while True:
            text = lib.qkv_plan_capture_text(self.plan.pointer, len(found))
            if text == ffi.NULL:
                return found
            found.append(text_of(text))

    @property
    def logits_tokens(self) -> list[int]:
        return [t for t in range(len(self.tokens)) if lib.qkv_plan_wants_logits(self.plan.pointer, t)]

    def edits_text(self, variant: int) -> str:
        return text_of(lib.qkv_plan_variant_text(self.plan.pointer, variant))

    def get(self, variant: int, key: Key) -> Optional[Captured]:
        site = SITES.get(key.site)
        reduction = REDUCTIONS.get(key.reduction)
        if site is None or reduction is None:
            return None
        tensor, layer = new_struct("tensor"), 0 if key.layer is None else key.layer
        if reduction:
            found = lib.qkv_result_get_reduced(self.pointer, variant, reduction, layer, tensor)
        else:
            found = lib.qkv_result_get(self.pointer, variant, site, layer, tensor)
        if not found or (reduction and key.site != "pattern"):
            return None
        shape = tuple(tensor.shape[i] for i in range(tensor.n_dims))
        heads = tuple(ffi.unpack(tensor.heads, tensor.n_heads)) if tensor.n_heads else ()
        kind = tensor.head_kind.decode() if tensor.n_heads else ""
        channels = tuple(ffi.unpack(tensor.channels, tensor.n_channels)) if tensor.n_channels else ()
        n_heads = self.model.info.n_kv_head if kind == "g" else self.model.info.n_head
        return Captured(view(tensor.data, shape, self.pointer), heads, kind, channels, n_heads)

    def keys(self, variant: int) -> list[Key]:
        found, index = [], 0
        number, site, layer = ffi.new("size_t *"), ffi.new("qkv_site *"), ffi.new("int32_t *")
        tensor = new_struct("tensor")
        while lib.qkv_result_item(self.pointer, index, number, site, layer, tensor):
            index += 1
            if number[0] == variant:
                found.append(
                    Key(
                        _SITE_NAMES[site[0]],
                        None if _SITE_NAMES[site[0]] in WITHOUT_LAYER else layer[0],
                        _REDUCTION_NAMES[tensor.reduction],
                    )
                )
        return found

    def reports(self, variant: int) -> list[EditReport]:
        found = []
        for i in range(lib.qkv_result_n_edits(self.pointer, variant)):
            ran = lib.qkv_result_edit_ran(self.pointer, variant, i)
            changed = int(lib.qkv_result_edit_changed(self.pointer, variant, i)) if ran else None
            found.append(
                EditReport(
                    text_of(lib.qkv_result_edit_text(self.pointer, variant, i)),
                    changed,
                    int(lib.qkv_result_edit_selected(self.pointer, variant, i)),
                )
            )
        return found

    def stats(self) -> dict[str, float]:
        stats = new_struct("run_stats")
        lib.qkv_result_get_stats(self.pointer, stats)
        return {
            "passes": stats.n_passes,
            "products": stats.n_matmul,
            "attention": stats.n_attention,
            "flop": stats.flop,
            "weight_bytes": stats.weight_bytes,
        }

    def metadata(self) -> dict[str, Any]:
        import json

        out, err = ffi.new("char **"), new_error()
        check(lib.qkv_store_describe(self.pointer, self.plan.pointer, self.model._pointer, out, err), err)
        try:
            return dict(json.loads(ffi.string(out[0]).decode()))
        finally:
            lib.qkv_text_free(out[0])

    def save(self, path: str) -> None:
        import os

        err = new_error()
        to = encoded(os.fsencode(path))
        check(lib.qkv_store_write(self.pointer, self.plan.pointer, self.model._pointer, to, err), err)


# ---- one tensor ----


class _Heads:
    """Heads of a tensor by their own numbers."""

    __slots__ = ("tensor", "kind")

    def __init__(self, tensor: "Tensor", kind: str) -> None:
        self.tensor, self.kind = tensor, kind

    def __getitem__(self, head: Any) -> Array:
        tensor = self.tensor
        if tensor.head_kind != self.kind:
            has = {"h": "query heads: use .h", "g": "key/value heads: use .g", "": "no heads"}[tensor.head_kind]
            raise MissingError(f"{tensor.key} has {has}")
        if isinstance(head, slice):
            n = len(tensor.heads)
            from_end = any(i is not None and selections.number(i, "a head") < 0 for i in (head.start, head.stop))
            if tensor.heads != tuple(range(n)) or (from_end and tensor._n_heads != n):
                raise MissingError(f"{tensor.key} has heads {list(tensor.heads)}: name them, or index the array")
            head = range(n)[head]
        if isinstance(head, (list, tuple, range, np.ndarray)) and np.ndim(head) > 0:
            return np.take(tensor.array, [self._place(h) for h in head], axis=tensor._head_axis)
        place = self._place(head)
        return tensor.array[place] if tensor._head_axis == 0 else tensor.array[:, place]

    def _place(self, head: Any) -> int:
        if isinstance(head, (bool, np.bool_)) or not hasattr(head, "__index__"):
            raise TypeError(f"heads are named by whole numbers, not by {head!r}; index the array itself for a mask")
        try:
            return self.tensor.heads.index(self._counted(head.__index__()))
        except ValueError:
            raise MissingError(
                f"head {self.kind}{head} of {self.tensor.key} was not captured; there are "
                f"{', '.join(self.kind + str(h) for h in self.tensor.heads)}"
            ) from None

    def _counted(self, head: int) -> int:
        """Of the model's heads, from the end where it is negative."""
        n = self.tensor._n_heads
        if head >= 0:
            return head
        if n is None:
            raise MissingError(
                f"head {self.kind}{head} of {self.tensor.key}: the file does not say how many heads the model has; "
                "count from 0"
            )
        if head < -n:
            raise MissingError(f"head {self.kind}{head} is out of range; the model has {n} such heads")
        return head + n

    def __repr__(self) -> str:
        return f"<heads {', '.join(self.kind + str(h) for h in self.tensor.heads)} of {self.tensor.key}>"


class Tensor(NDArrayOperatorsMixin):
    """A captured tensor that knows what it is: an array wherever one is taken, with heads by number.

    >>> import qkv
    >>> r = qkv.open().run("The river runs.", capture="pattern@3.h1,h2")
    >>> t = r[0].pattern[3]
    >>> t
    <qkv.Tensor pattern@3: 2 x 6 x 6 (head, query, key), heads h1, h2>
    >>> t.h[2].shape, float((t - t).max())
    ((6, 6), 0.0)
    """

    def __init__(self, key: Key, captured: Captured) -> None:
        #: The array itself: a read-only view.
        self.array: Array = captured.array
        self.key = key
        self.heads = captured.heads
        self.head_kind = captured.head_kind
        #: The channels, where the capture named some; () where it has all.
        self.channels = captured.channels
        self._n_heads = captured.n_heads

    @property
    def site(self) -> str:
        return self.key.site

    @property
    def layer(self) -> Optional[int]:
        return self.key.layer

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    @property
    def ndim(self) -> int:
        return int(self.array.ndim)

    @property
    def _head_axis(self) -> int:
        return 0 if self.site in ("pattern", "scores") else 1

    @property
    def axes(self) -> tuple[str, ...]:
        """What each index counts."""
        if self.key.reduction in ("mean", "max"):
            return ("head", "query block", "key block")
        if self.key.reduction:
            return ("head", {"columns": "key", "diagonals": "distance"}.get(self.key.reduction, "query"))
        if self.site in ("pattern", "scores"):
            return ("head", "query", "key")
        if self.heads:
            return ("token", "head", "channel")
        return ("token", "vocabulary" if self.site == "logits" else "channel")

    @property
    def h(self) -> _Heads:
        """Query heads by number: `t.h[11]`, or from the model's last one: `t.h[-1]`."""
        return _Heads(self, "h")

    @property
    def g(self) -> _Heads:
        """Key/value heads by number: `t.g[1]`, or from the model's last one: `t.g[-1]`."""
        return _Heads(self, "g")

    def copy(self) -> Array:
        """An array of its own, which can be changed."""
        return self.array.copy()

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Array:
        if copy:
            return np.array(self.array, dtype=dtype)
        return np.asarray(self.array, dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [x.array if isinstance(x, Tensor) else x for x in inputs]
        if "out" in kwargs:  # which numpy then refuses: arrays of results are read-only
            kwargs["out"] = tuple(x.array if isinstance(x, Tensor) else x for x in kwargs["out"])
        return getattr(ufunc, method)(*plain, **kwargs)

    def __getitem__(self, index: Any) -> Array:
        return self.array[index]

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Array]:
        return iter(self.array)

    def __getattr__(self, name: str) -> Any:
        """Methods of arrays: `t.max()`, `t.mean(axis=0)`."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.array, name)

    def __repr__(self) -> str:
        heads = f", heads {', '.join(self.head_kind + str(h) for h in self.heads)}" if self.heads else ""
        some = f", channels {', '.join(map(str, self.channels))}" if self.channels else ""
        return f"<qkv.Tensor {self.key}: {' x '.join(map(str, self.shape))} ({', '.join(self.axes)}){heads}{some}>"


class SiteView:
    """The tensors of one site by layer: `r[1].pattern[8]`."""

    def __init__(self, variant: "Variant", site: str) -> None:
        self._variant, self.site = variant, site

    @property
    def layers(self) -> list[int]:
        """The layers that were captured."""
        return [
            k.layer for k in self._variant.keys() if k.site == self.site and not k.reduction and k.layer is not None
        ]

    def __getitem__(self, layer: Any) -> Tensor:
        given = layer if isinstance(layer, tuple) else (layer,)
        return self._variant._tensor((self.site, *given))

    def __iter__(self) -> Iterator[Tensor]:
        return (self[layer] for layer in self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def stack(self) -> Array:
        """All captured layers as one array, the layer first: a copy."""
        return np.stack([self[layer].array for layer in self.layers])

    def __repr__(self) -> str:
        return f"<qkv.SiteView {self.site}: layers {', '.join(map(str, self.layers))}>"


# ---- variants ----


class Variant:
    """One variant of a result; variant 0 is the unedited run.

    >>> import qkv
    >>> v = qkv.open().run("The river runs.", edits="q@3.h1=zero", capture=["pattern@3", "logits"])[1]
    >>> v
    <qkv.Variant 1 (q@3.h1=zero): pattern@3, logits>
    >>> v["pattern", 3].shape, v["logits"].shape, v.pattern[3].h[1].shape
    ((4, 6, 6), (6, 4096), (6, 6))
    """

    def __init__(self, store: Any, number: int) -> None:
        self._store, self.number = store, number

    def __reduce__(self) -> Any:
        raise TypeError("a variant cannot be pickled: .save() the result and qkv.load() it, or take arrays out of it")

    def __copy__(self) -> "Variant":
        return self

    def __deepcopy__(self, memo: Any) -> "Variant":
        return self  # nothing of it can be changed

    @property
    def edits(self) -> str:
        """The edits, as they were given; "" of the unedited run."""
        return str(self._store.edits_text(self.number))

    @property
    def changed(self) -> dict[str, Optional[int]]:
        """How many values each edit changed; None where nothing that was captured depends on it."""
        return {r.text: r.changed for r in self._store.reports(self.number)}

    @property
    def selected(self) -> dict[str, int]:
        """How many values each edit covers."""
        return {r.text: r.selected for r in self._store.reports(self.number)}

    def keys(self) -> list[Key]:
        """What was captured: site, layer, reduction."""
        return list(self._store.keys(self.number))

    def values(self) -> list[Array]:
        """The captured arrays, in the order of `keys`."""
        return [self[key] for key in self.keys()]

    def items(self) -> list[tuple[Key, Array]]:
        """Keys and arrays."""
        return [(key, self[key]) for key in self.keys()]

    def _key(self, given: Any) -> Key:
        parts = given if isinstance(given, tuple) else (given,)
        if not parts or len(parts) > 3 or not isinstance(parts[0], str):
            raise TypeError('index with a site and a layer: result[1]["pattern", 8], or ["logits"]')
        site = translated(parts[0])
        rest = list(parts[1:])
        reduction = str(rest.pop()) if rest and isinstance(rest[-1], str) else ""
        if not reduction and ":" in site:
            site, reduction = site.split(":", 1)
        layer = rest[0] if rest else None
        if layer is None and "@" in site:
            site, number = site.split("@", 1)
            layer = int(number) if number[number.startswith("-") :].isdecimal() else None
        if layer is not None:
            if not hasattr(layer, "__index__") or selections.is_truth(layer):
                raise TypeError(f"a layer is one whole number, not {layer!r}; {site}.stack() has all of them")
            layer = self._layer(site, layer.__index__())
        return Key(site, None if site in WITHOUT_LAYER else layer, reduction.split("=")[0])

    def _layer(self, site: str, layer: int) -> int:
        """Of the model's layers, from the end where it is negative."""
        if layer >= 0:
            return layer
        if self._store.n_layer is None:
            raise MissingError(f"{site}@{layer}: the file does not say how many layers the model has; count from 0")
        if layer < -self._store.n_layer:
            raise MissingError(f"layer {layer} is out of range; the model has {self._store.n_layer} layers")
        return int(layer + self._store.n_layer)

    def _find(self, given: Any) -> tuple[Key, Captured]:
        key = self._key(given)
        if key.site not in SITES:
            raise MissingError(f"there is no site '{key.site}'; sites are {', '.join(SITES)}")
        captured = None
        if key.layer is not None or key.site in WITHOUT_LAYER:
            captured = self._store.get(self.number, key)
        if captured is None:
            there = ", ".join(map(str, self.keys())) or "nothing"
            what = (
                f"{key.site} needs its layer"
                if key.layer is None and key.site not in WITHOUT_LAYER
                else f"{key} was not captured"
            )
            raise MissingError(f"{what}; there is {there}")
        return key, captured

    def _tensor(self, given: Any) -> Tensor:
        return Tensor(*self._find(given))

    def __getitem__(self, key: Any) -> Array:
        return self._find(key)[1].array

    def get(self, key: Any, default: Any = None) -> Any:
        """The array, or `default` where it was not captured."""
        try:
            return self[key]
        except MissingError:
            return default

    def __contains__(self, key: Any) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[Key]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __getattr__(self, name: str) -> Any:
        if name not in SITES:
            raise AttributeError(f"a variant has no '{name}'; sites are {', '.join(SITES)}")
        return self._tensor(name) if name in WITHOUT_LAYER else SiteView(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(k.site for k in self.keys())})

    def __repr__(self) -> str:
        keys = [str(k) for k in self.keys()]
        shown = ", ".join(keys[:6]) + (f", ... {len(keys)} tensors" if len(keys) > 6 else "")
        return f"<qkv.Variant {self.number} ({self.edits or 'unedited'}): {shown}>"


class Result:
    """What a run returned: `r[0]` is the unedited run, `r[1]` the first variant.

    >>> import qkv
    >>> r = qkv.open().run("The river runs.", edits=["q@3=zero", "v@2=zero"], capture="pattern@3")
    >>> len(r), r.edits
    (3, ['', 'q@3=zero', 'v@2=zero'])
    >>> r.tokens, r.text
    (array([  0, 373, 2290, 1135, ...], dtype=int32), ['<|bos|>', ...])
    """

    def __init__(self, store: Any) -> None:
        self._store = store

    def __reduce__(self) -> Any:
        raise TypeError("a result lies in the library's memory and cannot be pickled: .save() it, and qkv.load()")

    def __copy__(self) -> "Result":
        return self

    def __deepcopy__(self, memo: Any) -> "Result":
        return self  # nothing of it can be changed

    @property
    def tokens(self) -> Array:
        """The token ids."""
        return self._store.tokens

    @property
    def text(self) -> list[str]:
        """What each token stands for: the labels of an axis."""
        return list(self._store.token_strings)

    @property
    def prompt(self) -> Optional[str]:
        """The text that was given; None: token ids were."""
        return self._store.prompt if self._store.prompt is None else str(self._store.prompt)

    @property
    def captures(self) -> list[str]:
        """What was to be kept, as it was given."""
        return list(self._store.captures)

    @property
    def edits(self) -> list[str]:
        """The edits of every variant, as they were given; "" first. `m.run(prompt, r.edits)` makes them again."""
        return [variant.edits for variant in self]

    @property
    def logits_tokens(self) -> list[int]:
        """The tokens that the rows of captured logits belong to."""
        return list(self._store.logits_tokens)

    @property
    def metadata(self) -> dict[str, Any]:
        """What a file of this result says about itself."""
        return dict(self._store.metadata())

    @property
    def stats(self) -> dict[str, float]:
        """What the run took: passes, products, floating-point operations, bytes of weights."""
        return dict(self._store.stats())

    @property
    def baseline(self) -> Variant:
        """The unedited run."""
        return self[0]

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes .safetensors, .npz, .json or, of one tensor, .npy, as `qkv run -o`; `qkv.load` reads all but .npy.

        >>> import os, qkv, tempfile
        >>> r = qkv.open().run("The river runs.", capture="pattern@3")
        >>> path = os.path.join(tempfile.mkdtemp(), "out.safetensors")
        >>> r.save(path)
        >>> bool((qkv.load(path)[0]["pattern", 3] == r[0]["pattern", 3]).all())
        True
        """
        import os

        self._store.save(os.fspath(path))

    @overload
    def __getitem__(self, variant: int) -> Variant: ...

    @overload
    def __getitem__(self, variant: slice) -> list[Variant]: ...

    def __getitem__(self, variant: Union[int, slice]) -> Union[Variant, list[Variant]]:
        """A variant; of a slice, a list of them: `r[1:]` are all that have edits."""
        if isinstance(variant, slice):
            return [self[i] for i in range(len(self))[variant]]
        if not hasattr(variant, "__index__") or selections.is_truth(variant):
            raise TypeError(f"a result is indexed with the number of a variant, then with a site: r[1][{variant!r}]")
        number = variant.__index__()
        number += len(self) if number < 0 else 0
        if not 0 <= number < len(self):
            raise IndexError(f"variant {variant} is out of range; there are 0 (unedited) to {len(self) - 1}")
        return Variant(self._store, number)

    def __len__(self) -> int:
        return int(self._store.n_variants)

    def __iter__(self) -> Iterator[Variant]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        variants = f"{len(self)} variants" if len(self) > 1 else "unedited run"
        return f"<qkv.Result: {variants} of {len(self.tokens)} tokens, capture {', '.join(self.captures)}>"
