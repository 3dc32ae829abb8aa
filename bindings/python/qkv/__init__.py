"""What a transformer attends to when its queries, keys or values are changed.

    >>> import qkv
    >>> m = qkv.open()                                    # a path, a directory or a name; here the default model
    >>> r = m.run("The river runs past the mill.", edits=["q@3.h1=scale:1e-3"], capture=["pattern@3", "logits[-1]"])
    >>> r[1]["pattern", 3].shape                          # a numpy view: heads, queries, keys
    (4, 9, 9)

Edits are texts of the notation (docs/edits.md) or objects that print as such:
`qkv.scale("q", layer=3, head=1, by=1e-3)`.
The whole guide is docs/python.md.

numpy, and what needs it, is imported when it is first used.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._core import Error, MissingError
from ._kinds import StudyKind
from .edits import (
    Edit,
    add,
    clamp,
    custom,
    freeze,
    keep,
    mask,
    mean,
    noise,
    patch,
    quant,
    remove,
    resample,
    scale,
    zero,
)
from .edits import set as set
from .hooks import hooks, site
from .model import Info, Model
from .model import open as open
from .names import codes, default_prompts, families, metrics, models, operations, reductions, sites, studies, version
from .notices import Notice

if TYPE_CHECKING:
    from .charts import Heatmap, heatmap
    from .explorer import Explorer
    from .figures import Difference, Figure, Page, Panel, Report, figure_options, notebook
    from .files import load
    from .generation import Generation, Step
    from .predictions import Predictions
    from .reproductions import recipe, recipes, reproduce
    from .results import Result, Tensor, Variant
    from .study import Study, Table
    from .sweeps import Plot, Sweep, load_sweep
    from .tables import Rows
    from .weights import Weight, Weights

__version__ = version()

_LAZY = {
    "Heatmap": "charts",
    "heatmap": "charts",
    "Explorer": "explorer",
    "Difference": "figures",
    "Figure": "figures",
    "Page": "figures",
    "Panel": "figures",
    "Report": "figures",
    "figure_options": "figures",
    "notebook": "figures",
    "load": "files",
    "Generation": "generation",
    "Step": "generation",
    "Predictions": "predictions",
    "recipe": "reproductions",
    "recipes": "reproductions",
    "reproduce": "reproductions",
    "Result": "results",
    "Tensor": "results",
    "Variant": "results",
    "Study": "study",
    "Table": "study",
    "Plot": "sweeps",
    "Sweep": "sweeps",
    "load_sweep": "sweeps",
    "Rows": "tables",
    "Weight": "weights",
    "Weights": "weights",
}

# For `from qkv import *`, which must not replace Python's own open and set.
__all__ = [
    "Difference",
    "Edit",
    "Error",
    "Explorer",
    "Figure",
    "Generation",
    "Heatmap",
    "Info",
    "MissingError",
    "Model",
    "Notice",
    "Page",
    "Panel",
    "Plot",
    "Predictions",
    "Report",
    "Result",
    "Rows",
    "Step",
    "Study",
    "StudyKind",
    "Sweep",
    "Table",
    "Tensor",
    "Variant",
    "Weight",
    "Weights",
    "add",
    "clamp",
    "codes",
    "custom",
    "default_prompts",
    "families",
    "figure_options",
    "freeze",
    "heatmap",
    "hooks",
    "keep",
    "load",
    "load_sweep",
    "mask",
    "mean",
    "metrics",
    "models",
    "noise",
    "notebook",
    "operations",
    "patch",
    "quant",
    "recipe",
    "recipes",
    "reductions",
    "remove",
    "reproduce",
    "resample",
    "scale",
    "site",
    "sites",
    "studies",
    "version",
    "zero",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'qkv' has no attribute '{name}'")
    value = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
