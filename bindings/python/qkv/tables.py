"""Rows of measured values as a structured array."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence

import numpy as np

from ._core import check, encoded, ffi, lib, new_error, new_struct, text_of
from . import selections
from .edits import Edits, Variants
from .notices import notice_idle
from .progress import shower

if TYPE_CHECKING:
    from .model import Model, Others

__all__ = ["Rows"]


class Rows(np.ndarray):  # type: ignore[type-arg]
    """A structured array, one value a row, that knows what its numbers stand for.

    Use it as any array: `rows["value"]`, `rows[rows["layer"] == 3]`, `np.sort(rows, order="value")`.

    >>> import qkv
    >>> rows = qkv.open().measure("The river runs past the mill.", metrics="sink", layers=3)
    >>> rows["value"].dtype, rows.to_dict()["head"]
    (dtype('float64'), [0, 1, 2, 3])
    """

    #: Edits of the variants by number, "" first; prompts by number; formulas of metrics by name.
    variants: list[str]
    prompts: list[Any]
    formulas: dict[str, str]
    #: How many values each edit of each variant changed, by prompt.
    changed: list[list[dict[str, Optional[int]]]]

    def __array_finalize__(self, other: Any) -> None:
        for name in ("variants", "prompts", "changed"):
            setattr(self, name, getattr(other, name, []))
        self.formulas = getattr(other, "formulas", {})

    def __reduce__(self) -> Any:
        """With what the numbers stand for, which arrays would leave out."""
        make, arguments, state = super().__reduce__()  # type: ignore[misc]
        return make, arguments, (state, self.__dict__)

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state[0])
        self.__dict__.update(state[1])

    def __getitem__(self, key: Any) -> Any:
        """A column is a plain array."""
        found = super().__getitem__(key)
        if isinstance(found, Rows) and found.dtype.names is None:
            return found.view(np.ndarray)
        return found

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns as lists."""
        return {name: self[name].tolist() for name in self.dtype.names or ()}

    def to_pandas(self) -> Any:
        """A DataFrame; needs pandas. Layers, heads and prompts that a value does not have are <NA>."""
        import pandas

        frame = pandas.DataFrame({name: np.asarray(self[name]) for name in self.dtype.names or ()})
        for name in ("prompt", "layer", "head"):
            if name in frame:
                frame[name] = frame[name].astype("Int32").mask(frame[name] < 0)
        return frame

    def __repr__(self) -> str:
        if self.dtype.names is None or self.ndim != 1:
            return repr(self.view(np.ndarray))
        return f"<qkv.Rows: {len(self)} rows of {', '.join(self.dtype.names)}>"

    def _repr_html_(self) -> Optional[str]:
        if self.dtype.names is None or self.ndim != 1:
            return None
        return html_table(self.dtype.names, [row.tolist() for row in self.view(np.ndarray)[:20]], len(self))


def html_table(names: Sequence[str], rows: Sequence[Sequence[Any]], total: int) -> str:
    """A table for notebooks."""
    import html

    def cell(value: Any) -> str:
        return f"{value:.6g}" if isinstance(value, float) else html.escape(str(value))

    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{cell(v)}</td>" for v in row) + "</tr>" for row in rows)
    more = f"<p>{total} rows, {len(rows)} shown</p>" if total > len(rows) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def make_rows(columns: Mapping[str, Any]) -> Rows:
    """Columns of equal length as one array."""
    dtype = np.dtype([(name, np.asarray(column).dtype) for name, column in columns.items()])
    length = len(next(iter(columns.values())))
    rows = np.empty(length, dtype=dtype)
    for name, column in columns.items():
        rows[name] = column
    return rows.view(Rows)


def int_column(n: int) -> tuple[Any, Any]:
    array = np.empty(n, dtype=np.int32)
    return array, ffi.from_buffer("int32_t[]", array)


def names_column(names: Sequence[str], numbers: Any) -> Any:
    table = np.array(list(names) or [""])
    return table[numbers]


def _columns(table: Any, prompt: int, texts: Sequence[str]) -> dict[str, Any]:
    n = int(lib.qkv_table_size(table))
    (variant, v), (layer, la), (head, h), (metric, m) = (int_column(n) for _ in range(4))
    value = np.empty(n, dtype=np.float64)
    lib.qkvpy_table_columns(table, v, la, h, m, ffi.from_buffer("double[]", value))
    return {
        "prompt": np.full(n, prompt, dtype=np.int32),
        "variant": variant,
        "layer": layer,
        "head": head,
        "metric": names_column(texts, metric),
        "value": value,
    }


def _measure_texts(measure: Any) -> tuple[list[str], dict[str, str]]:
    texts: list[str] = []
    formulas: dict[str, str] = {}
    while True:
        text = lib.qkv_measure_text(measure, len(texts))
        if text == ffi.NULL:
            return texts, formulas
        formulas[text_of(text)] = text_of(lib.qkv_measure_info(measure, len(texts)).formula)
        texts.append(text_of(text))


def _new_measure(model: "Model", metrics: Any, layers: Any, heads: Any) -> Any:
    options, err, out = new_struct("measure_options"), new_error(), ffi.new("qkv_measure **")
    kept = [
        ffi.new("char[]", encoded(selections.for_model(v, what, axis, model))) if v is not None else ffi.NULL
        for v, what, axis in ((layers, "layers", "L"), (heads, "heads", "H"))
    ]
    options.layers, options.heads = kept
    if metrics is not None and not isinstance(metrics, str):
        metrics = ",".join(selections.ordered(metrics, "metrics"))
    check(lib.qkv_measure_new(out, ffi.NULL if metrics is None else encoded(metrics), options, err), err)
    return ffi.gc(out[0], lib.qkv_measure_free)


def _changes(result: Any, n_variants: int) -> list[dict[str, Optional[int]]]:
    found: list[dict[str, Optional[int]]] = []
    for v in range(n_variants):
        found.append(
            {
                text_of(lib.qkv_result_edit_text(result, v, i)): int(lib.qkv_result_edit_changed(result, v, i))
                if lib.qkv_result_edit_ran(result, v, i)
                else None
                for i in range(lib.qkv_result_n_edits(result, v))
            }
        )
    return found


def measure(
    model: "Model",
    prompts: Any,
    edits: Edits,
    metrics: Any,
    layers: Any,
    heads: Any,
    others: "Others",
    special: bool,
    parse_special: bool,
    progress: Any,
) -> Rows:
    """See Model.measure."""
    from .model import Plan, prompt_list
    from .names import default_prompts

    texts_of = default_prompts() if prompts is None else prompt_list(prompts)
    variants, measuring, session = Variants(edits), _new_measure(model, metrics, layers, heads), model._session()
    names, formulas = _measure_texts(measuring)
    parts, changed = [], []
    show = _over_prompts(shower(progress), len(texts_of))
    err = new_error()
    with session.showing(show) as shown:
        for number, prompt in enumerate(texts_of):
            plan = Plan(model, prompt, variants, (), others, special, parse_special)
            out = ffi.new("qkv_table **")
            if show is not None:
                show.at(number)
            status = lib.qkv_measure_run(measuring, out, session.pointer, plan.pointer, err)
            check(status, err, variants.registered)
            table = ffi.gc(out[0], lib.qkv_table_free)
            parts.append(_columns(table, number, names))
            changed.append(_changes(lib.qkv_table_result(table), len(variants.texts) + 1))
        out = ffi.new("qkv_table **")
        shown.check(lib.qkv_measure_finish(measuring, out, err), err)
    notice_idle(changed[0] if changed else ())
    parts.append(_columns(ffi.gc(out[0], lib.qkv_table_free), -1, names))
    rows = make_rows({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
    rows.variants, rows.prompts, rows.formulas, rows.changed = ["", *variants.texts], texts_of, formulas, changed
    return rows


class _OverPrompts:
    """Tells how far several prompts have come, each of them a run of its own."""

    def __init__(self, show: Any, total: int) -> None:
        self.show, self.total, self.number = show, total, 0

    def at(self, number: int) -> None:
        self.number = number

    def __call__(self, what: str, done: float, total: float) -> None:
        part = done / total if total else 0
        self.show("prompts", self.number + min(part, 1.0), self.total)

    def close(self) -> None:
        close = getattr(self.show, "close", None)
        if close is not None:
            close()


def _over_prompts(show: Any, total: int) -> Optional[_OverPrompts]:
    return None if show is None else _OverPrompts(show, total)
