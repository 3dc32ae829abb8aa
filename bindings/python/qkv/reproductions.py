"""Figures, charts and studies made again from the recipe that their files carry; and recipes that are studies."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

from ._core import Error, check, encoded, ffi, lib, new_error, new_struct, text_of, wrong
from .figures import Difference, Figure
from .model import Model, prompt_list
from .model import open as open_model
from .names import default_prompts, models, study_kinds
from .notices import notice
from .progress import shower
from .study import Study, finished
from .sweeps import Plot, Sweep

if TYPE_CHECKING:
    from .model import Progress, Prompts

__all__ = ["recipe", "recipes", "reproduce"]

# Where versions differ, so may the last digits of weights between 0 and 1; as in `qkv reproduce --check`.
_TOLERANCE = 1e-4


# ---- the model ----


def _find_model(name: str, wanted: str, keyword: str) -> Model:
    """The default model, or the one on this machine that has the hash; those of the same name first."""
    places = [m for m in models() if m.path]
    places.sort(key=lambda m: os.path.basename(m.path) != name)
    for path in (None, *(m.path for m in places)):
        try:
            model = open_model(path)
            if model.hash() == wanted:
                return model
        except Error:
            continue
    raise wrong(f"no model on this machine has the hash {wanted}; it was called {name}: give it as '{keyword}'")


def _model(given: Optional[Model], name: str, wanted: str, keyword: str) -> Model:
    if given is None:
        return _find_model(name, wanted, keyword)
    if given.hash() != wanted:
        notice(f"another model: its hash is {given.hash()}, the recipe's {wanted}")
    return given


# ---- making it again ----


def _compare(reproduction: Any, made: Union[Figure, Plot, Study]) -> Optional[Difference]:
    """None: what the recipe states beside the numbers is not the same, which is said as a notice."""
    struct, err = new_struct("reproduction_difference"), new_error()
    try:
        check(lib.qkv_reproduction_compare(reproduction, json.dumps(made.recipe).encode(), struct, err), err)
    except Error as problem:
        if problem.code != lib.QKV_ERR_FORMAT:
            raise
        notice(str(problem))
        return None
    return Difference(
        bool(struct.same_bits),
        bool(struct.same_versions),
        bool(struct.same_shape),
        int(struct.n_panels),
        int(struct.n_different),
        int(struct.row),
        int(struct.col),
        float(struct.largest),
    )


def _is_same(d: Optional[Difference]) -> bool:
    if d is None or not d.same_shape:
        return False
    return d.same_bits or (not d.same_versions and d.largest <= _TOLERANCE)


def _again_study(
    reproduction: Any, info: Any, model: Model, other: Optional[Model], progress: Any
) -> Union[Figure, Study]:
    out, err, session = ffi.new("qkv_study **"), new_error(), model._session()
    second = other._session().pointer if other is not None else ffi.NULL
    with session.showing(shower(progress)) as shown:
        status = lib.qkv_reproduction_study(reproduction, out, session.pointer, second, err)
        pointer = ffi.gc(out[0], lib.qkv_study_free)
        shown.check(status, err)
    if not info.is_study:  # a figure has all that its recipe asks for: it is not made again for a page or a report
        return Figure(pointer, {"page": True, "report": True}, None)
    return finished(pointer, json.loads(text_of(info.recipe)).get("look", {}))


def _again_plot(reproduction: Any, results: Optional[Sweep], called: str) -> Plot:
    if results is None:
        raise wrong(f"this is a chart of a sweep's results, called {called}: give them as 'results'")
    out, err = ffi.new("qkv_plot **"), new_error()
    with results._lock:
        check(lib.qkv_reproduction_plot(reproduction, out, results._pointer, err), err)
    return Plot(ffi.gc(out[0], lib.qkv_plot_free), None)


def reproduce(
    path: Union[str, "os.PathLike[str]"],
    model: Optional[Model] = None,
    *,
    other: Optional[Model] = None,
    results: Union[None, str, "os.PathLike[str]", Sweep] = None,
    progress: "Progress" = False,
) -> Union[Figure, Plot, Study]:
    """What a file shows, made again from the recipe in it. `.same` says whether the numbers are the file's.

    The model is found by its hash among the default one and those of `qkv.models()`, or given; `other` is the second
    one of a comparison. A chart needs the `results` of its sweep: the file, or a `Sweep`. `.difference` has the
    details; where something else than numbers differs, it is None, and a notice says what.

    >>> import os, qkv, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "lens.png")
    >>> qkv.open().lens("The river runs to the", answer=" sea").save(path)
    >>> again = qkv.reproduce(path)
    >>> again.kind, again.same
    ('lens', True)
    """
    out, err, info = ffi.new("qkv_reproduction **"), new_error(), new_struct("reproduction_info")
    check(lib.qkv_reproduction_open(out, encoded(os.fsencode(path)), err), err)
    reproduction = ffi.gc(out[0], lib.qkv_reproduction_free)
    check(lib.qkv_reproduction_get_info(reproduction, info, err), err)
    made: Union[Figure, Plot, Study]
    if info.is_plot:
        if model is not None or other is not None:
            raise wrong("a chart needs no model: leave out 'model' and 'other'")
        sweep = results if results is None or isinstance(results, Sweep) else Sweep(results)
        made = _again_plot(reproduction, sweep, text_of(info.results))
    else:
        if results is not None:
            raise wrong("'results' is for charts of sweeps")
        model = _model(model, text_of(info.model), text_of(info.model_hash), "model")
        two = info.is_study and info.other_hash != ffi.NULL and text_of(info.other_hash) != ""
        if other is not None and not two:
            raise wrong("'other' is for studies of two models")
        if two:
            other = _model(other, text_of(info.other_model), text_of(info.other_hash), "other")
        made = _again_study(reproduction, info, model, other, progress)
    made.difference = _compare(reproduction, made)
    made.same = _is_same(made.difference)
    return made


# ---- recipes that people write ----


def _folder() -> Path:
    return Path(__file__).with_name("recipes")


def recipes() -> dict[str, str]:
    """The recipes that come with the package, and their titles.

    >>> import qkv
    >>> qkv.recipes()["ships"]
    'Ships: what silencing each head does to the next token'
    """
    found = {path.stem: json.loads(path.read_text()) for path in sorted(_folder().glob("*.json"))}
    return {name: recipe["title"] for name, recipe in found.items()}


def _of_sweep(found: dict[str, Any]) -> dict[str, Any]:
    """A sweep and its tables are the specification of the study `effects`."""
    own = found["sweep"].get("prompts") if isinstance(found["sweep"], dict) else None
    return {"study": "effects", "options": {"spec": json.dumps(found)}, "prompts": own}


def _read(name: Union[str, "os.PathLike[str]"]) -> dict[str, Any]:
    """Of a name without a folder and a suffix, the one that comes with the package."""
    path = Path(name)
    if isinstance(name, str) and not path.suffix and path.name == name:
        path = _folder() / f"{name}.json"
        if not path.exists():
            raise wrong(f"there is no recipe '{name}'; there are {', '.join(recipes())}")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise wrong(f"{path} is not JSON: {problem}") from None
    if isinstance(found, dict) and "sweep" in found and "study" not in found:
        return _of_sweep(found)
    if not isinstance(found, dict) or not isinstance(found.get("study"), str):
        raise wrong(f"{path} is not a recipe: it has neither 'study' nor 'sweep'")
    unknown = set(found) - {"title", "about", "study", "options", "prompts"}
    if unknown or not isinstance(found.get("options", {}), dict):
        raise wrong(f"{path}: the recipe of a study has title, about, study, options (an object) and prompts alone")
    return found


def _bundled_prompts(kind: str) -> list[str]:
    """As many as the study takes: those of the file of many, or the first of the few."""
    few = default_prompts()
    most = study_kinds()[kind].prompts[1] if kind in study_kinds() else 0
    return few[:most] if most <= len(few) else (_folder() / "prompts.txt").read_text(encoding="utf-8").splitlines()


def recipe(
    name: Union[str, "os.PathLike[str]"],
    model: Optional[Model] = None,
    prompts: "Prompts" = None,
    *,
    progress: "Progress" = False,
    **options: Any,
) -> Study:
    """A study as a recipe says: one of `qkv.recipes()`, or a file. `options` take the place of the recipe's.

    Without prompts, those of the recipe, or neutral texts that come with the package.

    >>> import qkv
    >>> qkv.recipe("ships", prompts=["The river runs past the mill."]).kind
    'ships'
    """
    found = _read(name)
    if prompts is None:
        prompts = found.get("prompts") or _bundled_prompts(found["study"])
    given = {**found.get("options", {}), **options}
    return (model or open_model()).study(found["study"], *prompt_list(prompts), progress=progress, **given)
