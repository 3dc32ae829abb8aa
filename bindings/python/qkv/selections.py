"""Layers, heads, tokens and channels as the notation writes them.

A list of truth values, or an array of them, is a mask: one value for each layer, head, token or channel. A text cannot
say how long the mask was, so that is kept beside it and checked when model and prompt are known.
"""
from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Iterable, NamedTuple, Optional, Union

from ._core import wrong

if TYPE_CHECKING:
    from .model import Model

__all__ = ["Mask", "Numbers", "Selected"]

# Layers or heads: a number, several, a range, a mask, or "*".
Numbers = Union[int, str, slice, range, Iterable[int], None]

_AXES = {
    "L": ("layers", "the model"),
    "H": ("query heads", "the model"),
    "G": ("key/value heads", "the model"),
    "T": ("tokens", "the prompt"),
    "D": ("channels", "the site"),
    "d": ("channels", "a head"),
    "F": ("channels", "the site"),
    "V": ("channels", "the site"),
}


class Mask(NamedTuple):
    """What a mask is for, as a letter of `_AXES`, and how long it is."""

    axis: str
    length: int

    def check(self, model: "Model", n_tokens: Optional[int]) -> None:
        info = model.info
        sizes = dict(
            L=info.n_layer, H=info.n_head, G=info.n_kv_head, D=info.n_embd, d=info.head_dim, F=info.n_ff, V=info.n_vocab
        )
        n = n_tokens if self.axis == "T" else sizes[self.axis]
        if n is not None and n != self.length:
            what, whose = _AXES[self.axis]
            raise wrong(f"a mask has {self.length} values for the {what}, and {whose} has {n}")


class Selected(NamedTuple):
    """A text of the notation, and the masks that it came from."""

    text: str
    masks: tuple[Mask, ...] = ()


def is_list(value: Any) -> bool:
    """Arrays of one number are numbers."""
    return hasattr(value, "__iter__") and not isinstance(value, str) and getattr(value, "ndim", 1) > 0


def is_truth(value: Any) -> bool:
    """True or False, also numpy's."""
    return isinstance(value, bool) or (
        getattr(value, "ndim", 1) == 0 and str(value.dtype) in ("bool", "torch.bool")
    )


def number(value: Any, what: str, hint: str = "") -> int:
    """A whole number, and not True or False."""
    try:
        if not is_truth(value):
            return operator.index(value)
    except TypeError:
        hint = ""
    raise TypeError(f"{what} must be a whole number, not {value!r}{hint}")


def _chosen(value: Any, what: str) -> int:
    """One of several that can be chosen, also by a mask."""
    return number(value, what, "; a mask is a list with a value for each")


def real(value: Any, what: str) -> float:
    """A number, and not True or False."""
    try:
        if not is_truth(value):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{what} must be a number, not {value!r}")


def ordered(value: Any, what: str) -> Any:
    """What was given, unless it is a set, where an order matters."""
    if isinstance(value, (set, frozenset)):
        raise TypeError(f"{what}: the order matters, and a set has none: give a list, not {value!r}")
    return value


def flag(value: Any, what: str) -> int:
    """A truth value, or the whole number of an option."""
    return int(value) if is_truth(value) else number(value, what)


def counted(what: str, value: Any, n: int) -> int:
    """One of n layers or heads, from the end where it is negative."""
    found = number(value, what)
    if found < -n:
        raise wrong(f"{what} {found} is out of range; the model has {n}")
    return found + n if found < 0 else found


def _unmasked(value: Any, what: str, axis: str) -> tuple[Any, tuple[Mask, ...]]:
    """A mask as the numbers that it selects."""
    if not is_list(value):
        return value, ()
    if getattr(value, "ndim", 1) != 1:
        raise TypeError(f"{what}: an array of {value.ndim} axes cannot be written; give one with one axis")
    listed = list(value)
    if not listed or not all(is_truth(v) for v in listed):
        return listed, ()
    ordered(value, what)
    chosen = [i for i, v in enumerate(listed) if v]
    if not chosen:
        raise ValueError(f"{what}: the mask selects nothing")
    return chosen, (Mask(axis, len(listed)),)


def for_model(value: Numbers, what: str, axis: str, model: "Model") -> str:
    """Layers or heads of a model that is known."""
    found = numbers(value, what, axis)
    for mask in found.masks:
        mask.check(model, None)
    return found.text


def numbers(value: Numbers, what: str, axis: str) -> Selected:
    """Layers or heads."""
    if isinstance(value, str):
        return Selected(value)
    if value is None:
        return Selected("*")
    if isinstance(value, slice):
        if value == slice(None):
            return Selected("*")
        if value.step not in (None, 1):
            raise TypeError(f"{what}: a slice with a step cannot be written; give a list or a range")
        start = 0 if value.start is None else _chosen(value.start, what)
        stop = None if value.stop is None else _chosen(value.stop, what)
        if stop is None or stop < 0 or start < 0:
            last = -1 if stop is None else stop - 1
            if stop == 0 or (start < 0) == (last < 0) and last < start:
                raise ValueError(f"{what}: the slice is empty")
            return Selected(f"{start}-{last}")
        value = range(start, stop)
    several, masks = _unmasked(value, what, axis)
    if is_list(several):
        texts = [str(_chosen(v, what)) for v in several]
        if not texts:
            raise ValueError(f"{what}: the list is empty")
        return Selected(",".join(texts), masks)
    return Selected(str(_chosen(value, what)))


def _token(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, slice):
        if value.step not in (None, 1):
            raise TypeError("tokens: a slice with a step cannot be written; give a list")
        start = "" if value.start is None else str(_chosen(value.start, "a token"))
        stop = "" if value.stop is None else str(_chosen(value.stop, "a token"))
        return f"{start}:{stop}"
    return str(_chosen(value, "a token"))


def _side(value: Any) -> Selected:
    """Rows or columns of a map: the notation has one number or range for each."""
    chosen, masks = _unmasked(value, "tokens", "T")
    if not masks:
        return Selected(_token(value))
    if chosen != list(range(chosen[0], chosen[-1] + 1)):
        raise wrong("a mask of a map's rows or columns must select neighbours: others need an edit each")
    return Selected(f"{chosen[0]}:{chosen[-1] + 1}", masks)


def tokens(value: Any, is_map: bool) -> Selected:
    """`[...]` of the notation; of a map, a pair is rows and columns, and a mask is for rows."""
    if value is None:
        return Selected("")
    if is_map and is_list(value) and getattr(value, "ndim", 1) == 1 and not all(is_truth(v) for v in value):
        sides = [_side(v) for v in ordered(value, "tokens of a map")]
        return Selected("[" + ",".join(s.text for s in sides) + "]", tuple(m for s in sides for m in s.masks))
    if is_map:
        side = _side(value)
        return Selected(f"[{side.text.strip('[]')}]", side.masks)
    several, masks = _unmasked(value, "tokens", "T")
    if is_list(several):
        return Selected("[" + ",".join(_token(v) for v in several) + "]", masks)
    return Selected(f"[{_token(value).strip('[]')}]")


def channels(value: Any, axis: str) -> Selected:
    """`{...}` of the notation, which is that of tokens."""
    if value is None:
        return Selected("")
    found = tokens(value.strip("{}") if isinstance(value, str) else value, False)
    return Selected("{" + found.text[1:-1] + "}", tuple(Mask(axis, m.length) for m in found.masks))
