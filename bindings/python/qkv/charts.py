"""Charts of arrays of your own, drawn as the library draws."""
from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

from ._core import Strings, ffi, lib, names_of, new_struct, wrong
from . import selections
from .figures import Drawing, bounds, enum_number

__all__ = ["Heatmap", "heatmap"]


class Heatmap(Drawing):
    """A heatmap: shows itself in a notebook, `.save("a.pdf")`, `.data`.

    >>> import qkv
    >>> h = qkv.heatmap([[0.0, 0.5], [1.0, 0.25]])
    >>> h, h._repr_png_()[0][1:4]
    (<qkv.Heatmap: 2 x 2>, b'PNG')
    """

    _formats = ("png", "svg", "pdf")
    _count = 0

    def __init__(self, values: Any, options: dict[str, Any]) -> None:
        super().__init__()
        self.data = np.array(values, dtype=np.float64, order="C")
        if self.data.ndim != 2 or not self.data.size:
            raise wrong(f"a heatmap is drawn of a matrix, not of an array of shape {self.data.shape}")
        self._strings = Strings()
        self._map, self._style = self._describe(options)
        Heatmap._count += 1
        self.id = f"heatmap{Heatmap._count}"

    def _describe(self, options: dict[str, Any]) -> tuple[Any, Any]:
        keep, panel, chart = self._strings, new_struct("heatmap_panel"), new_struct("heatmap")
        panel.values = keep.keep(ffi.from_buffer("double[]", self.data))
        panel.n_rows, panel.n_cols = self.data.shape
        for name, field, n in (("rows", "row_labels", panel.n_rows), ("cols", "col_labels", panel.n_cols)):
            labels = selections.ordered(options[name], name)
            if labels is not None:
                if len(labels) != n:
                    raise wrong(f"{name}: {len(labels)} labels for {n} {name}")
                setattr(panel, field, keep.array([str(label) for label in labels]))
        for name in ("row_axis", "col_axis"):
            if options[name] is not None:
                setattr(chart, name, keep.one(options[name]))
        chart.panels, chart.n_panels = keep.keep(panel), 1
        if options["label"] is not None:
            chart.color.label = keep.one(options["label"])
        chart.color.scale = enum_number("scale", options["scale"], names_of(lib.qkv_scale_name)[:2])
        if options["range"] is not None:
            chart.color.low, chart.color.high = bounds(options["range"])
        chart.diverging = options["diverging"]
        chart.colormap = enum_number("colormap", options["colormap"], names_of(lib.qkv_colormap_name))
        style = new_struct("chart_style")
        if options["title"] is not None:
            style.title = keep.one(options["title"])
        return chart, style

    def _render(self, kind: bytes, out: Any, n: Any, err: Any) -> int:
        return int(lib.qkv_heatmap_render(self._map, self._style, kind, out, n, err))

    def _write(self, path: bytes, err: Any) -> int:
        return int(lib.qkv_heatmap_write(self._map, self._style, path, err))

    def _warning(self, index: int) -> Any:
        return ffi.NULL

    def __repr__(self) -> str:
        return f"<qkv.Heatmap: {self.data.shape[0]} x {self.data.shape[1]}>"


def heatmap(
    values: Any,
    *,
    rows: Optional[Sequence[Any]] = None,
    cols: Optional[Sequence[Any]] = None,
    row_axis: Optional[str] = None,
    col_axis: Optional[str] = None,
    label: Optional[str] = None,
    title: Optional[str] = None,
    scale: str = "linear",
    range: Optional[tuple[float, float]] = None,
    diverging: bool = False,
    colormap: str = "auto",
) -> Heatmap:
    """A matrix as a picture: NaN stays white. Values on both sides of 0 get a scale that is grey there.

    >>> import qkv
    >>> r = qkv.open().run("The river runs.", capture="pattern@3")
    >>> qkv.heatmap(r[0].pattern[3].h[1], rows=r.text, cols=r.text, row_axis="Query", col_axis="Key", label="weight")
    <qkv.Heatmap: 6 x 6>
    """
    return Heatmap(
        values,
        dict(
            rows=rows,
            cols=cols,
            row_axis=row_axis,
            col_axis=col_axis,
            label=label,
            title=title,
            scale=scale,
            range=range,
            diverging=diverging,
            colormap=colormap,
        ),
    )
