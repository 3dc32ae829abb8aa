"""Sweeps: their specification, running them, and their results files."""
from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Union

import numpy as np

from ._core import (
    MissingError,
    Strings,
    Watch,
    check,
    encoded,
    ffi,
    lib,
    names_of,
    new_error,
    new_struct,
    refuse_inside,
    text_of,
    wrong,
)
from . import selections
from .figures import Drawing, Page, bounds, enum_number
from .progress import shower
from .tables import Rows, int_column, make_rows, names_column

if TYPE_CHECKING:
    from .model import Model

__all__ = ["Sweep", "Plot", "load_sweep"]

USUAL_EPSILON = "logspace:1e-4,1,5"


def plain(value: Any) -> Any:
    """What JSON takes: arrays and ranges become lists, numpy's numbers Python's."""
    if isinstance(value, (str, bool)) or value is None:
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple, range)):
        return [plain(v) for v in value]
    return value


def _text(value: Any) -> str:
    """A number, a text, or several of them."""
    value = plain(value)
    return ",".join(str(v) for v in value) if isinstance(value, list) else str(value)


def _spec(model: "Model", prompts: Any, given: Mapping[str, Any], parse_special: bool) -> str:
    from .model import prompt_list

    spec: dict[str, Any] = {key: plain(value) for key, value in given.items() if value is not None}
    for key, axis in (("layers", "L"), ("heads", "H")):
        if key in spec:
            spec[key] = selections.for_model(given[key], key, axis, model)
    if given.get("epsilon") is Ellipsis:
        spec["epsilon"] = USUAL_EPSILON
    spec["prompts"] = [plain(p) for p in prompt_list(prompts)]
    if not spec["prompts"]:
        raise wrong("a sweep needs prompts: a list of texts")
    if parse_special:
        spec["parse_special"] = True
    try:
        return json.dumps(spec)
    except TypeError as problem:
        raise TypeError(f"a sweep is specified by texts, numbers and lists of them: {problem}") from None


class _Temporary:
    """A file that ends with the object."""

    def __init__(self) -> None:
        import tempfile

        self.directory = tempfile.TemporaryDirectory(prefix="qkv-")
        self.path = os.path.join(self.directory.name, "sweep.sqlite")


def run_sweep(
    model: "Model",
    prompts: Any,
    given: Mapping[str, Any],
    parse_special: bool,
    to: Any,
    processes: int,
    progress: Any,
) -> "Sweep":
    """See Model.sweep."""
    if prompts is None:
        raise wrong("a sweep needs prompts: a list of texts")
    out, err = ffi.new("qkv_sweep **"), new_error()
    spec = _spec(model, prompts, given, parse_special).encode()
    refuse_inside()
    check(lib.qkv_sweep_new(out, model._pointer, spec, err), err)
    sweep = ffi.gc(out[0], lib.qkv_sweep_free)
    temporary = _Temporary() if to is None else None
    path = temporary.path if temporary else os.fspath(to)
    show = shower(progress)
    watch, session_watch = Watch(), Watch()
    watch.show = show
    options = new_struct("sweep_share_options")
    options.n_processes, options.memory_budget = selections.number(processes, "processes"), model._memory
    options.progress, options.user = lib.qkvpy_swept, watch.handle
    options.session_progress = session_watch.progress
    try:
        check(lib.qkv_sweep_share(sweep, encoded(os.fsencode(path)), options, ffi.NULL, err), err)
        watch.finish()
    finally:
        close = getattr(show, "close", None)
        if close is not None:
            close()
    return Sweep(path, temporary)


class Sweep:
    """The results file of a sweep, finished or not.

    >>> import qkv
    >>> s = qkv.open().sweep("The river runs past the mill.", layers="2-3", targets="q,k", epsilon=..., metrics="tv")
    >>> rows = s.rows("tv")
    >>> rows.dtype.names
    ('prompt', 'layer', 'head', 'target', 'op', 'epsilon', 'value')
    >>> bool(rows[rows["epsilon"] == 1]["value"].max() == 0)
    True
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"], temporary: Any = None) -> None:
        self.path = os.fspath(path)
        self._temporary, self._lock = temporary, threading.Lock()
        out, err = ffi.new("qkv_sweep_reader **"), new_error()
        check(lib.qkv_sweep_reader_open(out, encoded(os.fsencode(self.path)), err), err)
        self._pointer = ffi.gc(out[0], lib.qkv_sweep_reader_close)

    @property
    def metrics(self) -> list[str]:
        """The metrics that the file has."""
        return names_of(lambda i: lib.qkv_sweep_reader_metric(self._pointer, i))

    @property
    def targets(self) -> list[str]:
        """What was edited."""
        return names_of(lambda i: lib.qkv_sweep_reader_target(self._pointer, i))

    @property
    def ops(self) -> list[str]:
        """The operations; "" is that of unedited cells."""
        return names_of(lambda i: lib.qkv_sweep_reader_op(self._pointer, i))

    def rows(self, metric: Optional[str] = None) -> Rows:
        """The values of one metric, or of all with a column that names them. Undefined or missing ones are NaN."""
        if metric is None:
            parts = [(name, self.rows(name)) for name in self.metrics]
            if not parts:
                raise wrong(f"{self.path} has no results yet")
            names = np.concatenate([np.full(len(rows), name) for name, rows in parts])
            every = {
                field: np.concatenate([rows[field] for _, rows in parts]) for field in parts[0][1].dtype.names or ()
            }
            value = every.pop("value")
            return make_rows({**every, "metric": names, "value": value})
        measured = self.metrics
        if measured and metric not in measured:
            raise MissingError(f"'{metric}' was not measured; there are {', '.join(measured)}")
        columns, _ = self._columns(metric)
        return make_rows(columns)

    def _columns(self, metric: str) -> tuple[dict[str, Any], Any]:
        out, err = ffi.new("qkv_sweep_rows **"), new_error()
        with self._lock:
            check(lib.qkv_sweep_reader_rows(self._pointer, encoded(metric), out, err), err)
        rows = ffi.gc(out[0], lib.qkv_sweep_rows_free)
        n = int(lib.qkv_sweep_rows_count(rows))
        (prompt, p), (layer, la), (head, h), (target, t), (op, o) = (int_column(n) for _ in range(5))
        epsilon, value, missing = np.empty(n), np.empty(n), np.empty(n, dtype=np.int8)
        lib.qkvpy_sweep_columns(
            rows,
            p,
            la,
            h,
            t,
            o,
            ffi.from_buffer("double[]", epsilon),
            ffi.from_buffer("double[]", value),
            ffi.from_buffer("int8_t[]", missing),
        )
        return {
            "prompt": prompt,
            "layer": layer,
            "head": head,
            "target": names_column(self.targets, target),
            "op": names_column(self.ops, op),
            "epsilon": epsilon,
            "value": value,
        }, missing

    @property
    def n_missing(self) -> int:
        """Cells that are not computed yet."""
        names = self.metrics
        return int(self._columns(names[0])[1].sum()) if names else -1

    def to_pandas(self) -> Any:
        """All rows as a DataFrame; needs pandas."""
        return self.rows().to_pandas()

    def to_dict(self) -> dict[str, list[Any]]:
        """All rows, as columns."""
        return self.rows().to_dict()

    def export(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes all rows as .csv or .json, as `qkv sweep export` does."""
        err = new_error()
        check(lib.qkv_sweep_export(os.fsencode(self.path), encoded(os.fsencode(path)), ffi.NULL, err), err)

    def plot(self, metric: Optional[str] = None, *, kind: str = "auto", **options: Any) -> "Plot":
        """A chart: layers and heads as a "heatmap", "lines" against ε, or a "ranking" of heads; as `qkv plot`.

        >>> import qkv
        >>> s = qkv.open().sweep("The river runs past the mill.", targets="q", epsilon=[0.1], metrics="tv")
        >>> s.plot("tv", kind="heatmap")
        <qkv.Plot heatmap of tv: 24 values>
        """
        return _make_plot(self, metric, kind, options)

    def __len__(self) -> int:
        names = self.metrics
        return len(self._columns(names[0])[1]) if names else 0

    def __repr__(self) -> str:
        n = len(self)
        missing = self.n_missing if n else 0
        return f"<qkv.Sweep: {n - missing} of {n} cells, metrics {', '.join(self.metrics)}>"


def load_sweep(path: Union[str, "os.PathLike[str]"]) -> Sweep:
    """The results file of a sweep, also of one that is running.

    >>> import os, qkv, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "r.sqlite")
    >>> s = qkv.open().sweep("The river runs.", layers="3", targets="q", ops="zero", metrics="tv", to=path)
    >>> qkv.load_sweep(path)
    <qkv.Sweep: 4 of 4 cells, metrics tv>
    """
    return Sweep(path)


_TEXTS = ("target", "op", "epsilon", "title", "font")
_NUMBERS = ("layers", "heads")
_FLAGS = ("change", "hide_notes", "no_recipe", "page")
_WHOLES = ("top",)
_FLOATS = ("dpi", "width", "font_size")
_ENUMS = {
    "by": ("auto", "target", "layer", "head"),
    "band": ("auto", "range", "sd", "none"),
    "scale": ("auto", "linear", "log"),
    "axis": ("auto", "linear", "log"),
    "order": ("auto", "largest", "smallest", "magnitude"),
    "text": ("auto", "paths", "text"),
}


def _make_plot(sweep: Sweep, metric: Optional[str], kind: str, given: Mapping[str, Any]) -> "Plot":
    """See Sweep.plot."""
    strings, options, err, out = Strings(), new_struct("plot_options"), new_error(), ffi.new("qkv_plot **")
    options.kind = enum_number("kind", kind, names_of(lib.qkv_plot_kind_name))
    if metric is not None:
        options.metric = strings.one(metric)
    for name, value in given.items():
        if value is None:
            continue
        if name in _TEXTS:
            setattr(options, name, strings.one(_text(value)))
        elif name in _NUMBERS:
            chosen = selections.numbers(value, name, "")
            if chosen.masks:
                raise TypeError(f"{name}: a results file does not say how long a mask must be; give numbers")
            setattr(options, name, strings.one(chosen.text))
        elif name in _FLAGS:
            setattr(options, name, selections.flag(value, name))
        elif name in _WHOLES:
            setattr(options, name, selections.number(value, name))
        elif name in _FLOATS:
            setattr(options, name, selections.real(value, name))
        elif name == "range":
            options.range = bounds(value)
        elif name == "colormap":
            options.colormap = enum_number(name, value, names_of(lib.qkv_colormap_name))
        elif name in _ENUMS:
            setattr(options, name, enum_number(name, value, _ENUMS[name]))
        else:
            known = (*_TEXTS, *_NUMBERS, *_FLAGS, *_WHOLES, *_FLOATS, "range", "colormap", *_ENUMS)
            raise TypeError(f"a plot has no option '{name}'; there are {', '.join(sorted(known))}")
    with sweep._lock:
        check(lib.qkv_plot_new(out, sweep._pointer, options, err), err)
    make_page = None if given.get("page") else lambda: _make_plot(sweep, metric, kind, {**given, "page": True})
    return Plot(ffi.gc(out[0], lib.qkv_plot_free), make_page)


class Plot(Drawing):
    """A chart of a sweep: shows itself in a notebook, `.save("a.pdf")`, `.rows()`.

    >>> import qkv
    >>> s = qkv.open().sweep(["The river runs."], targets="q", epsilon=[0.5], metrics="tv")
    >>> s.plot("tv", kind="heatmap", epsilon=0.5, target="q")
    <qkv.Plot heatmap of tv: 24 values>
    """

    _formats = ("png", "svg", "pdf", "html")

    def __init__(self, pointer: Any, make_page: Optional[Callable[[], "Plot"]]) -> None:
        """`make_page` makes the same chart with what its page needs; None: it has that, or cannot be made anew."""
        super().__init__()
        self._pointer, self._make_page = pointer, make_page
        info, err = new_struct("plot_info"), new_error()
        check(lib.qkv_plot_get_info(self._pointer, info, err), err)
        self.kind = names_of(lib.qkv_plot_kind_name)[info.kind]
        self.metric, self.title, self.id = text_of(info.metric), text_of(info.title), text_of(info.id)
        self.recipe: dict[str, Any] = json.loads(text_of(info.recipe)) if info.recipe != ffi.NULL else {}
        self._n_values = int(info.n_values)

    def _render(self, kind: bytes, out: Any, n: Any, err: Any) -> int:
        return int(lib.qkv_plot_render(self._pointer, kind, out, n, err))

    def _write(self, path: bytes, err: Any) -> int:
        return int(lib.qkv_plot_write(self._pointer, path, err))

    def _warning(self, index: int) -> Any:
        return lib.qkv_plot_warning(self._pointer, index)

    def interactive(self) -> Page:
        """The chart as a page whose cells open, with all metrics of the sweep, in a frame."""
        return Page(self if self._make_page is None else self._make_page())

    def rows(self) -> Rows:
        """The numbers that are drawn."""
        value, err = new_struct("plot_value"), new_error()
        fields = ("layer", "head", "epsilon", "mean", "low", "high", "n")
        found: list[list[Any]] = []
        for i in range(self._n_values):
            check(lib.qkv_plot_get_value(self._pointer, i, value, err), err)
            found.append([text_of(value.target), *(getattr(value, field) for field in fields)])
        kinds = {"layer": np.int32, "head": np.int32, "n": np.int64}
        columns: dict[str, Any] = {"target": np.array([f[0] for f in found])}
        for i, field in enumerate(fields):
            columns[field] = np.array([f[i + 1] for f in found], dtype=kinds.get(field, np.float64))
        return make_rows(columns)

    def __repr__(self) -> str:
        return f"<qkv.Plot {self.kind} of {self.metric}: {self._n_values} values>"
