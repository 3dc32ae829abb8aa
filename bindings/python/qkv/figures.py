"""Figures: drawings that show themselves in notebooks, know their numbers, and can be made again.

A notebook gets a PNG at the density of good screens, which every viewer and exporter shows; or an SVG, see `notebook`.
Names inside an SVG are made unique there, because pages that hold several of them mix those up otherwise. Reports are
pages of their own in a frame.
"""
from __future__ import annotations

import html as html_module
import json
import os
import re
import threading
from typing import TYPE_CHECKING, Any, Iterator, Mapping, NamedTuple, Optional, Sequence, Union

import numpy as np

from ._core import Strings, check, encoded, ffi, lib, names_of, new_error, new_struct, take_bytes, text_of, wrong
from . import selections
from .edits import Edit, Edits, Variants
from .notices import notice
from .progress import shower
from .results import view

if TYPE_CHECKING:
    from .model import Model

__all__ = ["Difference", "Figure", "Page", "Panel", "Report", "figure_options", "notebook"]

# QKV_SET_PROMPT, the name of prompts that mean:set and patch:resample are about.
_SET = "mean:set"

# What notebooks are given.
_notebook = "png"

def _kinds() -> dict[str, Any]:
    """The kinds of study that are figures."""
    from .names import study_kinds

    return {name: kind for name, kind in study_kinds().items() if kind.command.startswith("figure ")}


def figure_options() -> list[str]:
    """The options that figures take besides those of each kind.

    >>> import qkv
    >>> "colormap" in qkv.figure_options()
    True
    """
    return sorted({field.name for kind in _kinds().values() for field in kind.fields} | {"parse_special", "special"})


def notebook(drawings: str) -> None:
    """What drawings are in notebooks from now on: "png", which every viewer shows, or "svg", which exporters may drop.

    >>> import qkv
    >>> f = qkv.open().modify(layer=3, head=1)
    >>> qkv.notebook("svg")
    >>> f._repr_svg_()[:4], f._repr_png_()
    ('<svg', None)
    >>> qkv.notebook("png")
    """
    global _notebook
    if drawings not in ("png", "svg"):
        raise wrong(f"notebooks show png or svg, not {drawings!r}")
    _notebook = drawings


def enum_number(name: str, value: Any, names: Sequence[str]) -> int:
    try:
        return list(names).index(value)
    except ValueError:
        raise wrong(f"{name} is one of {', '.join(names)}, not {value!r}") from None


def bounds(given: Any) -> list[float]:
    """The two ends of a range."""
    return [selections.real(v, "range") for v in selections.ordered(given, "range")]


# ---- what can be drawn ----


def unique_names(svg: str, mark: str) -> str:
    """The same drawing as a part of a page, with names of its own for what it refers to inside."""
    svg = re.sub(r"^<\?xml.*?\?>\s*", "", svg)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="\1-{mark}"', svg)
    return re.sub(r'(href="#|url\(#)([^")]+)', rf"\1\2-{mark}", svg)


def png_density(data: bytes) -> float:
    """Dots to the inch, as the file says; 150 where it does not."""
    at = data.find(b"pHYs", 0, 4096)
    return int.from_bytes(data[at + 4 : at + 8], "big") * 0.0254 if at > 0 else 150.0


class Difference(NamedTuple):
    """How the numbers of a file and of what `qkv.reproduce` made of it differ.

    >>> import os, qkv, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "a.png")
    >>> qkv.open().modify(layer=3, head=1).save(path)
    >>> qkv.reproduce(path).difference.n_panels
    9
    """

    same_bits: bool  # all values are the same, bit for bit
    same_versions: bool  # of qkv, ggml and its backend: bits should be the same
    same_shape: bool  # False: panels of another size, and nothing is compared
    n_panels: int
    n_different: int
    row: int  # of the panel with the largest difference
    col: int
    largest: float  # of the values that the recipe holds


class Drawing:
    """What figures and plots have in common. A drawing is used by one thread at a time."""

    _formats: Sequence[str] = ()
    id: str = ""
    #: Of what `qkv.reproduce` made: whether its numbers are those of the file. None: it was not made from a file.
    same: Optional[bool] = None
    difference: Optional[Difference] = None

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._made: dict[str, bytes] = {}

    def _render(self, kind: bytes, out: Any, n: Any, err: Any) -> int:
        raise NotImplementedError

    def _write(self, path: bytes, err: Any) -> int:
        raise NotImplementedError

    def _warning(self, index: int) -> Any:
        raise NotImplementedError

    def render(self, kind: str) -> bytes:
        """The bytes of a file of that kind: "png", "svg", "pdf", ..."""
        if kind not in self._formats:
            raise wrong(f"there is no format '{kind}'; there are {', '.join(self._formats)}")
        with self._lock:
            if kind not in self._made:
                out, n, err = ffi.new("char **"), ffi.new("size_t *"), new_error()
                check(self._render(kind.encode(), out, n, err), err)
                self._made[kind] = take_bytes(out, n)
            return self._made[kind]

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes a file; its suffix says what: .png, .svg, .pdf, ... The recipe is inside."""
        err = new_error()
        with self._lock:
            check(self._write(encoded(os.fsencode(path)), err), err)

    @property
    def warnings(self) -> list[str]:
        """What a reader should know, a line each."""
        return names_of(self._warning)

    def _repr_svg_(self) -> Optional[str]:
        return unique_names(self.render("svg").decode(), self.id) if _notebook == "svg" else None

    def _repr_png_(self) -> Any:
        """With the width it has on a screen of 96 dots to the inch."""
        if _notebook != "png":
            return None
        data = self.render("png")
        return data, {"width": round(int.from_bytes(data[16:20], "big") * 96 / png_density(data))}


def frame(page: str, height: int) -> str:
    """A page of its own inside of another one."""
    return (
        f'<iframe srcdoc="{html_module.escape(page)}" width="100%" height="{height}" '
        'style="border: 0" sandbox="allow-scripts allow-downloads"></iframe>'
    )


class Report:
    """A figure in numbers, with checks of what it should show: shows itself in a notebook.

    >>> import qkv
    >>> report = qkv.open().modify(layer=3, head=1).report()
    >>> report
    <qkv.Report of figure ...>
    >>> report.markdown.startswith("#"), sorted(report.data)[:2]
    (True, [...])
    """

    def __init__(self, figure: "Figure") -> None:
        self.figure = figure

    @property
    def html(self) -> str:
        """The report as a page that needs nothing else."""
        return self.figure.render("html").decode()

    @property
    def markdown(self) -> str:
        """The report as Markdown."""
        return self.figure.render("md").decode()

    @property
    def data(self) -> dict[str, Any]:
        """The report's numbers."""
        return dict(json.loads(self.figure.render("json")))

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes .html, .md or .json."""
        self.figure.save(path)

    def _repr_html_(self) -> str:
        return frame(self.html, 700)

    def __str__(self) -> str:
        return self.markdown

    def __repr__(self) -> str:
        return f"<qkv.Report of figure {self.figure.id}>"


class Page:
    """A figure or a plot as a page that needs nothing else, in a frame: many fit into one notebook.

    >>> import qkv
    >>> page = qkv.open().modify(layer=3, head=1).interactive()
    >>> page.html[:15]
    '<!DOCTYPE html>'
    """

    def __init__(self, drawing: Drawing, height: int = 760) -> None:
        self.drawing, self.height = drawing, height

    @property
    def html(self) -> str:
        """The page."""
        return self.drawing.render("html").decode()

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes .html."""
        self.drawing.save(path)

    def _repr_html_(self) -> str:
        return frame(self.html, self.height)

    def __repr__(self) -> str:
        return f"<qkv.Page of {type(self.drawing).__name__.lower()} {self.drawing.id}>"


class Panel(NamedTuple):
    """One panel of a figure. Arrays are read-only views that keep the figure alive.

    >>> import qkv
    >>> panel = qkv.open().modify(layer=3, head=1, eps=[0.5])[0, 0]
    >>> panel.edits, panel.values.shape
    ('q@3.h1=scale:0.5', (15, 15))
    """

    title: str
    edits: str
    prompt: int
    layer: Optional[int]
    head: Optional[int]
    values: Any  # as drawn
    map: Any  # the whole map; None without a report
    unmodified: Any  # the same of the prompt without edits


class Figure(Drawing):
    """A figure: shows itself in a notebook, `.save("a.pdf")`, `.data`, `.report()`.

    >>> import qkv
    >>> f = qkv.open().modify(layer=3, head=1, eps=[0.5, 1e-3])
    >>> f[0, 1].title, f[0, 1].edits, f[0, 1].values.shape
    ('Modifying *Query* with ε = 0.001', 'q@3.h1=scale:0.001', (15, 15))
    >>> f.render("png")[1:4]
    b'PNG'
    """

    def __init__(self, pointer: Any, given: Mapping[str, Any], again: Any) -> None:
        super().__init__()
        self._pointer, self._given, self._again = pointer, given, again
        info, err = new_struct("study_info"), new_error()
        check(lib.qkv_study_get_info(pointer, info, err), err)
        self.kind = text_of(info.kind)
        self._formats = _kinds()[self.kind].formats
        self.shape = (int(info.map_rows), int(info.map_columns))
        self.layer = None if info.layer < 0 else int(info.layer)
        self.head = None if info.head < 0 else int(info.head)
        self.title, self.small_print = text_of(info.figure_title), text_of(info.small_print)
        self.edits, self.id = text_of(info.edits), text_of(info.id)
        self.range = (float(info.low), float(info.high))
        #: How to make it again; every file carries it.
        self.recipe: dict[str, Any] = json.loads(text_of(info.recipe))
        self._n_prompts = int(info.n_prompts)
        self._data: Any = None

    def _render(self, kind: bytes, out: Any, n: Any, err: Any) -> int:
        return int(lib.qkv_study_render(self._pointer, kind, out, n, err))

    def _write(self, path: bytes, err: Any) -> int:
        return int(lib.qkv_study_write(self._pointer, path, err))

    def _warning(self, index: int) -> Any:
        return lib.qkv_study_warning(self._pointer, index)

    @property
    def prompts(self) -> list[str]:
        """The texts."""
        prompt, err, found = new_struct("prompt"), new_error(), []
        for i in range(self._n_prompts):
            check(lib.qkv_study_get_prompt(self._pointer, i, prompt, err), err)
            found.append(text_of(prompt.text if prompt.text != ffi.NULL else prompt.written))
        return found

    def __getitem__(self, place: tuple[int, int]) -> Panel:
        if not isinstance(place, tuple) or len(place) != 2:
            raise TypeError("a figure is indexed with a row and a column: figure[0, 1]")
        row, col = (range(n)[selections.number(i, "a row or column")] for i, n in zip(place, self.shape))
        panel, err = new_struct("study_map"), new_error()
        check(lib.qkv_study_get_map(self._pointer, row * self.shape[1] + col, panel, err), err)
        whole = (panel.n_rows, panel.n_rows)
        maps = [view(p, whole, self._pointer) if p != ffi.NULL else None for p in (panel.whole, panel.unmodified)]
        return Panel(
            text_of(panel.title),
            text_of(panel.edits),
            int(panel.prompt),
            None if panel.layer < 0 else int(panel.layer),
            None if panel.head < 0 else int(panel.head),
            view(panel.values, (panel.n_rows, panel.n_columns), self._pointer),
            *maps,
        )

    def __iter__(self) -> Iterator[Panel]:
        return (self[r, c] for r in range(self.shape[0]) for c in range(self.shape[1]))

    def __len__(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def data(self) -> Any:
        """The values of all panels: (rows, columns, queries, keys). Where prompts have other lengths, an array of
        arrays. A copy; `figure[row, column].values` is a view."""
        if self._data is None:
            values = [[self[r, c].values for c in range(self.shape[1])] for r in range(self.shape[0])]
            if len({v.shape for row in values for v in row}) == 1:
                self._data = np.array(values)
            else:
                self._data = np.empty(self.shape, dtype=object)
                for r, row in enumerate(values):
                    for c, v in enumerate(row):
                        self._data[r, c] = v
        return self._data

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes a file; its suffix says what: .png, .svg, .pdf with the recipe inside, .html (the page of
        `interactive`), .md and .json (the report), or the data as .safetensors, .npz, .csv."""
        made = self._for_format(os.path.splitext(os.fsdecode(path))[1][1:].lower())
        super(Figure, made).save(path)

    def _for_format(self, kind: str) -> "Figure":
        """The figure with what the format needs."""
        if kind in ("md", "json"):
            return self._with("report")
        return self._with("page") if kind == "html" and not self._given.get("report") else self

    def report(self) -> Report:
        """The figure in numbers, with checks. What it needs is computed when it is first asked for."""
        return Report(self._with("report"))

    def interactive(self) -> "Page":
        """A page, in a frame, whose maps change as you drag: cells tell their values, factors have sliders.

        >>> import qkv
        >>> qkv.open().modify(layer=3, head=1).interactive()
        <qkv.Page of figure ...>
        """
        return Page(self if self._given.get("report") else self._with("page"))

    def _with(self, option: str) -> "Figure":
        """This figure, or the same made with one more option."""
        made: Figure = self if self._given.get(option) else self._again(option)
        return made

    def __repr__(self) -> str:
        where = "".join(
            f", {name} {value}" for name, value in (("layer", self.layer), ("head", self.head)) if value is not None
        )
        return f"<qkv.Figure {self.kind}: {self.shape[0]} x {self.shape[1]} panels{where}>"


# ---- making one ----


def prompt_array(
    model: "Model",
    given: Sequence[Any],
    names: Optional[Sequence[str]],
    special: bool,
    parse_special: bool,
    strings: Strings,
) -> Any:
    array = strings.keep(ffi.new("qkv_prompt[]", max(1, len(given))))
    for i, prompt in enumerate(given):
        lib.qkvpy_init_prompt(array + i)
        if isinstance(prompt, str):
            data = prompt.encode("utf-8", "surrogateescape")
            array[i].text, array[i].length = strings.keep(ffi.new("char[]", data)), len(data)
        else:
            ids, n, _ = model._ids(prompt)
            array[i].tokens, array[i].n_tokens = strings.keep(ids), n
        array[i].flags = (lib.QKV_TOKENIZE_ADD_SPECIAL if special else 0) | (
            lib.QKV_TOKENIZE_PARSE_SPECIAL if parse_special else 0
        )
        if names is not None:
            array[i].name = strings.one(names[i])
    return array


class _Drawn:
    """The edits of a figure: texts as everywhere, and what has to be checked about them."""

    def __init__(self, model: "Model", prompts: Optional[Sequence[Any]], special: bool, parse_special: bool) -> None:
        self.model, self.prompts, self.flags = model, prompts, (special, parse_special)

    def texts(self, edits: Edits) -> list[str]:
        found = Variants(edits, with_unedited=True)
        if found.registered:
            raise wrong(
                "a figure can be made again from what its files say, and a function cannot: use run() and draw that"
            )
        for mask in found.masks:
            if mask.axis == "T" and self.prompts is None:
                raise wrong("a mask of tokens needs the prompt that it is for")
            for prompt in self.prompts or [""]:
                mask.check(self.model, self.model._ids(prompt, *self.flags)[1] if mask.axis == "T" else None)
        return found.texts

    def one(self, edits: Edits) -> str:
        """Of a figure that draws one variant."""
        found = self.texts(edits)
        if len(found) > 1:
            raise wrong(
                f"this figure draws one variant, and a list of {len(found)} edits is {len(found)} variants: join edits "
                f"that are to be made at once by ' + ', or put them into a list of their own, [[...]]"
            )
        return found[0] if found else ""

    def sides(self, given: Any) -> list[str]:
        """Rows or columns, LABEL=EDITS: labels and edits, or edits that are their own labels."""
        if isinstance(given, Mapping):
            labels, texts = [str(label) for label in given], self.texts(list(given.values()))
        else:
            labels = texts = self.texts(given)
        return [label.replace("=", "\\=") + "=" + text for label, text in zip(labels, texts)]


def _factors(value: Any) -> str:
    """Each as it is to be written."""
    several = selections.ordered(value, "eps") if np.iterable(value) else [value]
    return ",".join(v if isinstance(v, str) else repr(selections.real(v, "eps")) for v in several)


def _option(field: Any, value: Any, drawn: _Drawn) -> Any:
    """What the library takes for an option of Python."""
    from .study import field_value

    if field.name == "variant":
        return drawn.one(value)
    if field.type == "flag":
        return bool(selections.flag(value, field.name))
    if field.name == "eps" and not isinstance(value, str):
        return _factors(value)
    if field.name == "range" and not isinstance(value, str):
        return ",".join(repr(end) for end in bounds(value))
    several = field.type == "text" and (selections.is_list(value) or isinstance(value, (str, slice)))
    if field.name in ("layer", "head") and not several:
        n = drawn.model.info.n_layer if field.name == "layer" else drawn.model.info.n_head
        value = selections.counted(field.name, value, n)
        return str(value) if field.type == "text" else value
    if field.name in ("layers", "head"):
        return selections.for_model(value, field.name, "L" if field.name == "layers" else "H", drawn.model)
    return field_value(field, value, drawn.model)


def _fields(kind: str, given: Mapping[str, Any], drawn: _Drawn) -> dict[str, Any]:
    """The fields of the study: rows and columns are mappings here, and all heads a flag."""
    known = {field.name: field for field in _kinds()[kind].fields}
    found: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name in ("rows", "cols"):
            found[name[:-1]] = drawn.sides(value)
        elif name == "all_heads":
            found["edit_heads"] = "all" if selections.flag(value, name) else "shown"
        elif name in known:
            found[name] = _option(known[name], value, drawn)
        else:
            raise TypeError(f"the figure {kind} has no option '{name}'; there are {', '.join(sorted(known))}")
    return found


def _add_prompts(study: Any, array: Any, n: int) -> None:
    err = new_error()
    for i in range(n):
        check(lib.qkv_study_add_prompt(study, array + i, err), err)


def _fill(study: Any, model: "Model", kind: str, prompts: Any, given: dict[str, Any]) -> None:
    from .model import prompt_list
    from .study import set_fields

    strings = Strings()
    special, parse_special = bool(given.pop("special", True)), bool(given.pop("parse_special", False))
    several = None if prompts is None else prompt_list(prompts)
    if several is None and given.get("pair") is not None:
        raise wrong("a pair needs a prompt, its first text")
    sources = given.pop("sources", None) or {}
    members = list(selections.ordered(given.pop("set_prompts", None), "set_prompts") or [])
    set_fields(study, _fields(kind, given, _Drawn(model, several, special, parse_special)))
    named = [(several or [], None), (list(sources.values()), list(sources)), (members, [_SET] * len(members))]
    for texts, names in named:
        _add_prompts(study, prompt_array(model, texts, names, special, parse_special, strings), len(texts))


def make_figure(model: "Model", kind: str, prompts: Any, given: dict[str, Any], progress: Any) -> Figure:
    """See Model.modify and its sisters."""
    err, out = new_error(), ffi.new("qkv_study **")
    check(lib.qkv_study_new(out, kind.encode(), err), err)
    pointer = ffi.gc(out[0], lib.qkv_study_free)
    _fill(pointer, model, kind, prompts, dict(given))
    session = model._session()
    with session.showing(shower(progress)) as shown:
        shown.check(lib.qkv_study_run(pointer, session.pointer, ffi.NULL, err), err)

    def again(option: str) -> Figure:
        return make_figure(model, kind, prompts, {**given, option: True}, progress)

    figure = Figure(pointer, given, again)
    for warning in figure.warnings:
        notice(warning)
    return figure
