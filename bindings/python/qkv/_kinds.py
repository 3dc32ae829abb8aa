"""The kinds of studies and their fields, as the library lists them.

Nothing of the package is imported here: the build reads the same table when it writes `_studies.py`
(study_methods.py).
"""
from __future__ import annotations

from typing import Any, NamedTuple, Optional

__all__ = ["Field", "StudyKind", "read_kinds"]

# In the order of qkv_field_type and qkv_field_use.
_TYPES = ("flag", "integer", "real", "range", "length", "word", "text", "list", "file", "path")
_USES = ("work", "look", "input")


class Field(NamedTuple):
    """What a study can be asked: the name of a keyword, what its value can be, and a sentence."""

    name: str
    type: str  # "flag", "integer", "real", "range", "length", "word", "text", "list", "file" or "path"
    use: str  # "work": what is computed; "look": how it is drawn; "input": where from and what with
    words: tuple[str, ...]
    bounds: Optional[tuple[float, float]]
    value: str  # how help calls its value: "N", "LAYERS"
    about: str


class StudyKind(NamedTuple):
    """A kind of study: what it answers, how many prompts and models it takes, and its keywords.

    >>> import qkv
    >>> patch = next(kind for kind in qkv.studies() if kind.name == "patch")
    >>> patch.title, patch.prompt_names
    ('activation patching between pairs of prompts', ('clean', 'corrupt'))
    """

    name: str
    title: str
    about: str
    examples: str  # command lines
    prompts: tuple[int, int]  # the least and the largest number
    prompt_names: tuple[str, ...]  # one of each in turn; (): they are alike
    default_prompts: int
    n_models: int
    resumes: bool
    command: str  # of the program: "lens", "figure modify"
    formats: tuple[str, ...]  # that it can be written as
    fields: tuple[Field, ...]

    @property
    def method(self) -> str:
        """The name of the method of a model."""
        return self.name.replace("-", "_")


def _text(ffi: Any, pointer: Any) -> str:
    return "" if pointer == ffi.NULL else str(ffi.string(pointer).decode())


def _words(ffi: Any, pointer: Any) -> tuple[str, ...]:
    return tuple(_text(ffi, pointer).split("|")) if pointer != ffi.NULL else ()


def _read_fields(ffi: Any, lib: Any, kind: bytes) -> tuple[Field, ...]:
    found: list[Field] = []
    struct = ffi.new("qkv_study_field *")
    while True:
        struct.size = ffi.sizeof("qkv_study_field")
        if not lib.qkv_study_get_field(kind, len(found), struct):
            return tuple(found)
        found.append(
            Field(
                _text(ffi, struct.name),
                _TYPES[struct.type],
                _USES[struct.use],
                _words(ffi, struct.words),
                (struct.least, struct.most) if struct.least or struct.most else None,
                _text(ffi, struct.value),
                _text(ffi, struct.help),
            )
        )


def read_kinds(ffi: Any, lib: Any) -> dict[str, StudyKind]:
    """All kinds, by name."""
    found: dict[str, StudyKind] = {}
    while True:
        name = lib.qkv_study_kind_name(len(found))
        if name == ffi.NULL:
            return found
        struct, err = ffi.new("qkv_study_kind *"), ffi.new("qkv_error *")
        struct.size = ffi.sizeof("qkv_study_kind")
        if lib.qkv_study_get_kind(name, struct, err) != 0:
            raise RuntimeError(_text(ffi, err.message))
        kind = StudyKind(
            _text(ffi, name),
            _text(ffi, struct.title),
            _text(ffi, struct.description).strip(),
            _text(ffi, struct.examples).strip(),
            (int(struct.least_prompts), int(struct.most_prompts)),
            _words(ffi, struct.prompt_names),
            int(struct.default_prompts),
            int(struct.n_models),
            bool(struct.resumes),
            _text(ffi, struct.command),
            _words(ffi, struct.formats),
            _read_fields(ffi, lib, ffi.string(name)),
        )
        found[kind.name] = kind
