"""Studies: questions about a model, their answers as tables and pictures.

A kind of study is a row of the library's table: its keywords are checked there, and named methods of `Model` are
written from it when the package is built (_studies.py).
"""
from __future__ import annotations

import html
import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional, Sequence, Union

import numpy as np

from ._core import Strings, check, encoded, ffi, lib, names_of, new_error, new_struct, text_of, wrong
from . import selections
from ._kinds import Field, StudyKind
from ._studies import Files
from .edits import Variants
from .figures import Drawing, prompt_array
from .names import study_kinds
from .notices import notice
from .progress import shower
from .sweeps import plain
from .tables import Rows, make_rows

if TYPE_CHECKING:
    from .model import Model

__all__ = ["Study", "Table"]


# ---- tables ----


class Table(Rows):
    """A table of a study: a structured array with a name and a title.

    A column of whole numbers is of integers, another one of numbers of floats; where a number is missing it is NaN.

    >>> import qkv
    >>> table = qkv.open().lens("The river runs to the", answer=" sea").tables["layers"]
    >>> table["layer"].tolist(), table.title
    ([0, 1, 2, 3, 4, 5], '...')
    """

    name: str
    title: str

    def __array_finalize__(self, other: Any) -> None:
        super().__array_finalize__(other)
        self.name, self.title = getattr(other, "name", ""), getattr(other, "title", "")

    def to_pandas(self) -> Any:
        """A DataFrame; needs pandas. Whole numbers stay whole where some are missing, which are <NA>."""
        import pandas

        frame = pandas.DataFrame({name: np.asarray(self[name]) for name in self.dtype.names or ()})
        for name in frame:
            there = frame[name].dropna()
            if frame[name].dtype.kind == "f" and 0 < len(there) < len(frame) and _are_whole(there.to_numpy()):
                frame[name] = frame[name].astype("Int64")
        return frame

    def __repr__(self) -> str:
        return super().__repr__().replace("qkv.Rows", f"qkv.Table {self.name}")


def _column(study: Any, table: int, column: int, n: int) -> Any:
    numbers, texts = np.empty(n), ffi.new("char *[]", max(1, n))
    lib.qkvpy_study_column(study, table, column, n, ffi.from_buffer("double[]", numbers), texts)
    if any(texts[i] != ffi.NULL for i in range(n)):
        cells = [_cell(numbers[i], texts[i]) for i in range(n)]
        return np.array(cells, dtype=None if all(isinstance(cell, str) for cell in cells) else object)
    return numbers.astype(np.int64) if n and _are_whole(numbers) else numbers


def _are_whole(numbers: Any) -> bool:
    return bool(np.all(np.abs(numbers) < 2**53) and np.all(numbers == np.floor(numbers)))


def _cell(number: float, text: Any) -> Any:
    """Where neither is there, an empty text."""
    if text != ffi.NULL:
        return text_of(text)
    return "" if np.isnan(number) else float(number)


def _table(study: Any, index: int) -> Table:
    info, err = new_struct("study_table"), new_error()
    check(lib.qkv_study_get_table(study, index, info, err), err)
    names = names_of(lambda column: lib.qkv_study_column(study, index, column))
    rows = make_rows({name: _column(study, index, i, int(info.n_rows)) for i, name in enumerate(names)}).view(Table)
    rows.name, rows.title = text_of(info.name), text_of(info.title)
    return rows


# ---- what came out ----


class Study(Files, Drawing):
    """What a study found: tables of numbers, pictures, and how to make it again. Shows itself in a notebook.

    >>> import qkv
    >>> s = qkv.open().lens("The river runs to the", answer=" sea")
    >>> s
    <qkv.Study lens: tables layers, answer, top; pictures answer, top, rank, logit>
    >>> s.tables["layers"]["rank"].shape
    (6,)
    >>> s.to_bytes("png", colormap="viridis")[1:4]
    b'PNG'
    """

    _formats = ("png", "svg", "pdf", "html", "csv", "json", "sqlite")

    def __init__(self, pointer: Any, look: Mapping[str, Any]) -> None:
        super().__init__()
        self._pointer, self._look = pointer, dict(look)
        info, err = new_struct("study_info"), new_error()
        check(lib.qkv_study_get_info(pointer, info, err), err)
        self.kind, self.title, self.id = text_of(info.kind), text_of(info.title), text_of(info.id)
        #: How to make it again; pictures, pages, JSON and SQLite carry it.
        self.recipe: dict[str, Any] = json.loads(text_of(info.recipe))
        #: Names of pictures, for `picture=`.
        self.pictures = names_of(lambda i: lib.qkv_study_picture_name(pointer, i))
        #: Lines about what was computed.
        self.notes = names_of(lambda i: lib.qkv_study_get_note(pointer, i))
        self._n_tables = int(info.n_tables)
        self._tables: Optional[dict[str, Table]] = None

    def __reduce__(self) -> Any:
        raise TypeError("a study lies in the library's memory and cannot be pickled: its tables can, and .save() it")

    @property
    def tables(self) -> dict[str, Table]:
        """The tables by name, the one that answers the question first."""
        if self._tables is None:
            with self._lock:
                found = [_table(self._pointer, i) for i in range(self._n_tables)]
            self._tables = {table.name: table for table in found}
        return self._tables

    def _render(self, kind: bytes, out: Any, n: Any, err: Any) -> int:
        return int(lib.qkv_study_render(self._pointer, kind, out, n, err))

    def _write(self, path: bytes, err: Any) -> int:
        return int(lib.qkv_study_write(self._pointer, path, err))

    def _warning(self, index: int) -> Any:
        return lib.qkv_study_warning(self._pointer, index)

    @contextmanager
    def _looking(self, look: Mapping[str, Any]) -> Iterator[None]:
        """While this is entered, the study has another look."""
        given = {name: plain(value) for name, value in look.items() if value is not None}
        with self._lock:
            set_fields(self._pointer, given)
            made, self._made = self._made, {} if given else self._made
            try:
                yield
            finally:
                self._made = made
                set_fields(self._pointer, {name: self._look.get(name) for name in given})

    def _save(self, path: Union[str, "os.PathLike[str]"], look: dict[str, Any]) -> None:
        with self._looking(look):
            Drawing.save(self, path)

    def _to_bytes(self, format: str, look: dict[str, Any]) -> bytes:
        with self._looking(look):
            return self.render(format)

    def _repr_svg_(self) -> Optional[str]:
        return super()._repr_svg_() if self.pictures else None

    def _repr_png_(self) -> Any:
        return super()._repr_png_() if self.pictures else None

    def _repr_html_(self) -> Optional[str]:
        """The first table, where there is no picture."""
        first = None if self.pictures else next(iter(self.tables.values()), None)
        return None if first is None else f"<p>{html.escape(first.title)}</p>{first._repr_html_()}"

    def __repr__(self) -> str:
        pictures = f"; pictures {', '.join(self.pictures)}" if self.pictures else ""
        return f"<qkv.Study {self.kind}: tables {', '.join(self.tables)}{pictures}>"


# ---- making one ----


def _edits(value: Any, model: "Model") -> str:
    """Edits that are made at once."""
    found = Variants([value if isinstance(value, (str, list, tuple)) else [value]])
    if found.registered:
        raise wrong("a study can be made again from what its files say, and a function cannot: use run()")
    for mask in found.masks:
        if mask.axis == "T":
            raise wrong("a study has several prompts: write tokens as numbers, not as a mask")
        mask.check(model, None)
    return found.texts[0] if found.texts else ""


def _listed(value: Any, name: str) -> str:
    """Several numbers or texts in one."""
    several = plain(selections.ordered(value, name))
    return ",".join(str(v) for v in several) if isinstance(several, list) else str(several)


def _numbers(value: Any, name: str, axis: str, model: "Model") -> str:
    """Layers or heads; also heads with their layers, "3.h0"."""
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, str) for v in value):
        return ",".join(value)
    return selections.for_model(value, name, axis, model)


# Texts that other values can be written as, by what help calls their value.
_TEXTS: dict[str, Callable[[Any, str, "Model"], str]] = {
    "LAYERS": lambda value, name, model: _numbers(value, name, "L", model),
    "HEADS": lambda value, name, model: _numbers(value, name, "H", model),
    "LIST": lambda value, name, model: _listed(value, name),
    "EDITS": lambda value, name, model: _edits(value, model),
    "JSON": lambda value, name, model: json.dumps(plain(value)),
}


def field_value(field: Field, value: Any, model: "Model") -> Any:
    """What JSON takes; the library checks it."""
    if field.type == "file" and isinstance(value, os.PathLike):
        with open(value, encoding="utf-8") as file:
            return file.read()
    if field.type == "path":
        return os.fsdecode(value)
    if field.type in ("integer", "real") and selections.is_truth(value):
        raise TypeError(f"{field.name} is a number, not {value!r}")
    if field.type == "text" and not isinstance(value, str) and field.value in _TEXTS:
        return _TEXTS[field.value](value, field.name, model)
    if field.type == "list" and field.value == "EDITS":  # an entry is a variant, as in run
        return [_edits(entry, model) for entry in (value if isinstance(value, (list, tuple)) else [value])]
    return plain(selections.ordered(value, field.name))


def set_fields(study: Any, fields: Mapping[str, Any]) -> None:
    """All of them or, where one is wrong, none."""
    for name, value in fields.items():
        try:
            json.dumps(value, allow_nan=False)
        except TypeError:
            raise TypeError(f"{name} is a text, a number, True or False, or a list of them, not {value!r}") from None
        except ValueError:
            raise wrong(f"'{name}' must be finite, not {value}") from None
    err = new_error()
    check(lib.qkv_study_set_json(study, encoded(json.dumps(fields)), err), err)


def _take_prompts(kind: StudyKind, positional: Sequence[Any], fields: dict[str, Any]) -> list[Any]:
    """Takes the prompts out of the keywords. Those with names alternate: the first of each, the second of each, ..."""
    from .model import prompt_list

    names = kind.prompt_names
    named = {name: fields.pop(name) for name in names or ("prompt", "prompts") if name in fields}
    if not names:
        given = [prompt for prompt in (*positional, *named.values()) if prompt is not None]
        return prompt_list(given[0]) if len(given) == 1 else given
    if len(positional) > len(names):
        raise wrong(f"prompts of the study '{kind.name}' are {', '.join(names)}; several of each are lists")
    for name, prompt in zip(names, positional):
        if name in named:
            raise TypeError(f"{name} is given twice")
        named[name] = prompt
    lists = [prompt_list(named[name]) if named.get(name) is not None else [] for name in names]
    if len({len(prompts) for prompts in lists}) > 1:
        raise wrong(f"give as many prompts of each name: {', '.join(names)}")
    return [prompt for turn in zip(*lists) for prompt in turn]


def _values(model: "Model", kind: StudyKind, fields: Mapping[str, Any]) -> dict[str, Any]:
    """What is given, by the library's names: a name that Python has another use for ends with `_`, as `self_`."""
    known = {field.name: field for field in kind.fields}
    values = {}
    for keyword, value in fields.items():
        name = keyword[:-1] if keyword.endswith("_") and keyword[:-1] in known else keyword
        if value is not None:
            values[name] = field_value(known[name], value, model) if name in known else value
    return values


def make_study(
    model: "Model",
    name: str,
    positional: Sequence[Any],
    other: Optional["Model"],
    fields: dict[str, Any],
    special: bool,
    parse_special: bool,
    progress: Any,
) -> Study:
    """See Model.study."""
    out, err, name = ffi.new("qkv_study **"), new_error(), name.replace("_", "-")
    check(lib.qkv_study_new(out, encoded(name), err), err)
    study, kind = ffi.gc(out[0], lib.qkv_study_free), study_kinds()[name]
    prompts = _take_prompts(kind, positional, fields)
    values = _values(model, kind, fields)
    set_fields(study, values)
    strings = Strings()
    array = prompt_array(model, prompts, None, special, parse_special, strings)
    for i in range(len(prompts)):
        check(lib.qkv_study_add_prompt(study, array + i, err), err)
    if kind.n_models == 2 and other is None:
        if "edit" not in values:
            raise wrong(f"{name}: give another model as 'other'; or 'edit', to compare the model with its edited self")
        other = model
    session = model._session()
    second = other._session().pointer if other is not None else ffi.NULL
    with session.showing(shower(progress)) as shown:
        shown.check(lib.qkv_study_run(study, session.pointer, second, err), err)
    looks = {field.name for field in kind.fields if field.use == "look"}
    return finished(study, {name: value for name, value in values.items() if name in looks})


def finished(pointer: Any, look: Mapping[str, Any]) -> Study:
    """A study that has run, with its warnings said."""
    study = Study(pointer, look)
    for warning in study.warnings:
        notice(warning)
    return study
