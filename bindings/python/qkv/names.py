"""Lists that the library knows: sites, operations, metrics, families, statuses, models."""
from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Optional

from ._kinds import StudyKind, read_kinds
from ._core import check, ffi, lib, names_of, new_error, text_of

__all__ = [
    "Site",
    "Operation",
    "Metric",
    "LocalModel",
    "sites",
    "operations",
    "metrics",
    "families",
    "reductions",
    "codes",
    "models",
    "studies",
    "version",
    "default_prompts",
]


class Site(NamedTuple):
    """A named place of the forward pass."""

    name: str
    shape: str
    about: str


class Operation(NamedTuple):
    """What an edit can do."""

    name: str
    arguments: str
    about: str


class Metric(NamedTuple):
    """Something that can be measured."""

    name: str
    title: str
    unit: str
    range: str
    scope: str
    formula: str
    needs: str
    parameters: str
    undefined: str
    source: str


class LocalModel(NamedTuple):
    """A model on this machine that has a name."""

    name: str
    path: str
    size: int


def sites() -> list[Site]:
    """The sites, in the order of the forward pass.

    >>> import qkv
    >>> [site.name for site in qkv.sites()][:4]
    ['resid_pre', 'q', 'k', 'v']
    """
    names = names_of(lib.qkv_site_name)
    return [
        Site(name, text_of(lib.qkv_site_shape(i)), text_of(lib.qkv_site_description(i)))
        for i, name in enumerate(names)
    ]


def operations() -> list[Operation]:
    """The operations of edits.

    >>> import qkv
    >>> qkv.operations()[0]
    Operation(name='scale', arguments='a factor', about='multiplies by the factor')
    """
    return [
        Operation(name, text_of(lib.qkv_op_arguments(i)), text_of(lib.qkv_op_description(i)))
        for i, name in enumerate(names_of(lib.qkv_op_name))
    ]


def reductions() -> dict[str, str]:
    """What a captured pattern can be reduced to while it is computed.

    >>> import qkv
    >>> qkv.reductions()["first"]
    'H,T: weight on the first key, per query'
    """
    names = names_of(lib.qkv_reduction_name)
    return {name: text_of(lib.qkv_reduction_description(i)) for i, name in enumerate(names) if name}


def metrics() -> list[Metric]:
    """The metrics, with their formulas.

    >>> import qkv
    >>> next(m.title for m in qkv.metrics() if m.name == "sink")
    'mean weight on one key'
    """
    found: list[Metric] = []
    while True:
        info = lib.qkv_metric_get(len(found))
        if info == ffi.NULL:
            return found
        scope = text_of(lib.qkv_metric_scope_name(info.scope))
        found.append(
            Metric(
                text_of(info.name),
                text_of(info.title),
                text_of(info.unit),
                text_of(info.range),
                scope,
                text_of(info.formula),
                text_of(info.needs),
                text_of(info.parameters),
                text_of(info.undefined),
                text_of(info.source),
            )
        )


def families() -> list[str]:
    """The architectures that can be opened.

    >>> import qkv
    >>> "llama" in qkv.families(), "gpt2" in qkv.families()
    (True, True)
    """
    return names_of(lib.qkv_family_name)


def codes() -> dict[str, int]:
    """The codes of errors by name.

    >>> import qkv
    >>> qkv.codes()["ERR_PLAN"]
    -7
    """
    status = ffi.new("int *")
    found: dict[str, int] = {}
    while True:
        name = lib.qkv_status_name(len(found), status)
        if name == ffi.NULL:
            return found
        found[text_of(name)[len("QKV_") :]] = status[0]


@lru_cache(maxsize=None)
def study_kinds() -> dict[str, StudyKind]:
    """The kinds of studies by name."""
    return read_kinds(ffi, lib)


def studies() -> list[StudyKind]:
    """The kinds of studies that `Model.study` makes, with the keywords that each takes.

    >>> import qkv
    >>> lens = next(kind for kind in qkv.studies() if kind.name == "lens")
    >>> lens.name, [field.name for field in lens.fields if field.use == "work"]
    ('lens', ['answer', 'top', 'heads'])
    """
    return list(study_kinds().values())


def models() -> list[LocalModel]:
    """The models on this machine that `qkv.open` takes by name: those of `qkv pull`, and Hugging Face's cache.

    >>> import qkv
    >>> all(model.size > 0 for model in qkv.models())
    True
    """
    out, err = ffi.new("qkv_model_list **"), new_error()
    check(lib.qkv_model_list_new(out, err), err)
    found = ffi.gc(out[0], lib.qkv_model_list_free)
    items = (lib.qkv_model_list_get(found, i) for i in range(lib.qkv_model_list_count(found)))
    return [LocalModel(text_of(i.name), text_of(i.path), i.size) for i in items]


def default_prompts() -> list[str]:
    """The neutral texts that figures and measurements use when none is given.

    >>> import qkv
    >>> len(qkv.default_prompts())
    3
    """
    return names_of(lib.qkv_default_prompt)


def version() -> str:
    """The version of the library.

    >>> import qkv
    >>> qkv.version() == qkv.__version__
    True
    """
    return text_of(lib.qkv_version())


SITES: dict[str, int] = {name: i for i, name in enumerate(names_of(lib.qkv_site_name))}
REDUCTIONS: dict[str, int] = {name: i for i, name in enumerate(names_of(lib.qkv_reduction_name))}
#: What each index of a site counts: "T,H,d".
SHAPES: dict[str, str] = {name: text_of(lib.qkv_site_shape(i)) for name, i in SITES.items()}
#: Sites after all layers: "logits", "final_norm".
WITHOUT_LAYER: frozenset[str] = frozenset(name for name, i in SITES.items() if not lib.qkv_site_has_layer(i))


def site_number(name: str) -> Optional[int]:
    return SITES.get(name)
