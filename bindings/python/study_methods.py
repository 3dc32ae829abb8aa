"""Writes qkv/_studies.py: a method of `Model` for every kind of study, from the table that the library has of them.

The table is read from the library that the package is built against, so the methods are those that it has. A kind whose
name a method of `Model` has already, such as `heads`, gets none: `m.study("heads")` makes it.
"""
import ast
import importlib.util
import keyword
import re
import shlex
import textwrap
from pathlib import Path

from cffi import FFI

import ffi_build

HEADER = '''"""A method of `Model` for every kind of study, and files of studies: written by the build (study_methods.py)."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Optional, Sequence, Union

from ._core import Prompt
from .edits import Edit
from .selections import Numbers

if TYPE_CHECKING:
    from .model import Model, Progress, Prompts
    from .study import Study

Path = Union[str, "os.PathLike[str]"]
Listed = Union[str, float, Sequence[Any]]
Edited = Union[str, Edit, Sequence[Union[str, Edit]]]
'''

METHODS = '''

class Studies:
    """What `Model` has from this module."""

    def study(self, kind: str, /, *prompts: Any, **fields: Any) -> "Study":
        raise NotImplementedError
'''

LOOK = '''

class Files:
    """What `Study` has from this module: files, and how they look."""

    def _save(self, path: Path, look: dict[str, Any]) -> None:
        raise NotImplementedError

    def _to_bytes(self, format: str, look: dict[str, Any]) -> bytes:
        raise NotImplementedError
'''

TYPES = {
    "flag": "bool",
    "integer": "int",
    "real": "float",
    "range": "Sequence[float]",
    "length": "Union[str, float]",
    "text": "str",
    "list": "Union[str, Sequence[str]]",
    "file": "Path",
    "path": "Path",
}
# Texts that lists can be written as, by what help calls their value.
TEXTS = {
    "LAYERS": "Numbers",
    "HEADS": "Union[Numbers, Sequence[str]]",
    "LIST": "Listed",
    "EDITS": "Edited",
    "JSON": "Any",
}


def load(path):
    """A module of the package by itself: the package needs the compiled module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kinds_of(package):
    include, directories = ffi_build.places()
    library = next((p for d in directories for p in [Path(d, "libqkv.so")] if p.exists()), None)
    if library is None:
        raise SystemExit("libqkv.so was not found")
    ffi = FFI()
    ffi.cdef(ffi_build.declarations(include))
    return load(package / "_kinds.py").read_kinds(ffi, ffi.dlopen(str(library.resolve())))


def taken_names(package):
    """What `Model` has already."""
    tree = ast.parse((package / "model.py").read_text())
    (model,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"]
    return {node.name for node in model.body if isinstance(node, ast.FunctionDef)}


# ---- parameters ----

# What `Model.study` takes of every kind.
OWN = ("other", "special", "parse_special", "progress")


def python_name(field):
    """A name that Python has no other use for."""
    return field.name + "_" if keyword.iskeyword(field.name) or field.name == "self" else field.name


def type_of(field):
    if field.type == "word":
        return f"Literal[{', '.join(repr(word) for word in field.words)}]"
    return TEXTS.get(field.value, "str") if field.type == "text" else TYPES[field.type]


def parameter(field):
    """Of a flag that may be set already, None leaves it as it is."""
    if field.type == "flag" and field.use != "look":
        return f"{python_name(field)}: bool = False"
    return f"{python_name(field)}: Optional[{type_of(field)}] = None"


def prompt_parameters(kind):
    """Names and annotated parameters. Where `pairs` can take their place, named prompts may be left out."""
    least, most = kind.prompts
    if most == 0:
        return [], []
    if kind.prompt_names:
        return list(kind.prompt_names), [f'{name}: "Prompts" = None' for name in kind.prompt_names]
    needed = least and not kind.default_prompts
    if most == 1:
        return ["prompt"], ["prompt: Prompt" if needed else "prompt: Optional[Prompt] = None"]
    return ["prompts"], ['prompts: "Prompts"' if needed else 'prompts: "Prompts" = None']


def sentence(field):
    """Its help, where it speaks of the command line in the words of Python."""
    about = re.sub(r"; may be repeated$", "; one, or a list", field.about)
    return re.sub(r"; '-' for standard input$", "", about)


def described(field):
    bounds = f"; {field.bounds[0]:g} to {field.bounds[1]:g}" if field.bounds and field.bounds[1] <= 10000 else ""
    file = "; a text, or a `pathlib.Path` whose file is read" if field.type == "file" else ""
    text = f"`{python_name(field)}`: {sentence(field)}{bounds}{file}"
    return textwrap.fill(text, 106, initial_indent="- ", subsequent_indent="  ")


# ---- examples ----


def example(kind, line):
    """A command line as a call; None where it has something that a call has not."""
    words = shlex.split(line, comments=True)[2:]
    named = {field.name.replace("_", "-"): field for field in kind.fields}
    models, prompts, given, files = [], [], [], []
    if words and kind.prompts[1] == 0 and not words[0].startswith("-"):
        first = next(field for field in kind.fields if words[0] in field.words)
        given.append(f"{first.name}={words.pop(0)!r}")
    while words:
        option = words.pop(0).lstrip("-")
        field = named.get(option)
        if option == "json":
            continue  # how the program prints
        if field is not None and field.type == "flag":
            given.append(f"{python_name(field)}=True")
            continue
        if option == "json" or not words:
            return None
        value = words.pop(0)
        if option == "m":
            models.append(f"qkv.open({value!r})")
        elif option == "p":
            prompts.append(repr(value))
        elif option == "f":
            prompts.append(f"open({value!r}).read().splitlines()")
        elif option in kind.prompt_names:
            given.insert(len([g for g in given if g.split("=")[0] in kind.prompt_names]), f"{option}={value!r}")
        elif option == "o":
            files.append(value)
        elif field is not None:
            number = field.type in ("integer", "real")
            path = f"pathlib.Path({value!r})" if field.type == "file" else repr(value)
            given.append(f"{python_name(field)}={value if number else path}")
        else:
            return None
    if len(models) > 1:
        given.append(f"other={models[1]}")
    drawn = [file for file in files if ":" not in file and not file.endswith(".sqlite")]
    return written_call(
        f"{models[0] if models else 'm'}.{kind.method}(", prompts + given, f").save({drawn[0]!r})" if drawn else ")"
    )


def written_call(before, arguments, after):
    """On one line, or an argument to a line."""
    line = before + ", ".join(arguments) + after
    return line if len(line) < 104 else before + (",\n" + " " * len(before)).join(arguments) + after


def examples(kind):
    lines = kind.examples.replace("\\\n", " ").splitlines()
    return [call for call in (example(kind, line) for line in lines if line.strip()) if call]


# ---- the module ----


def docstring(parts, indent):
    text = "\n\n".join(part for part in parts if part).replace("\\", "\\\\").replace('"""', "'''")
    return textwrap.indent(f'"""{text}\n"""', " " * indent) + "\n"


def method(kind):
    names, parameters = prompt_parameters(kind)
    fields = [f for use in ("work", "input", "look") for f in kind.fields if f.use == use and f.name not in OWN]
    others = ['other: "Optional[Model]" = None'] if kind.n_models == 2 else []
    last = ["special: bool = True", "parse_special: bool = False", 'progress: "Progress" = False']
    signature = ["self", *parameters, "*", *others, *map(parameter, fields), *last]
    asked = [f for f in fields if f.use != "look"]
    parts = [
        textwrap.fill(kind.title[0].upper() + kind.title[1:] + ".", 108),
        *(textwrap.fill(part, 108) for part in re.split(r"\n\s*\n", kind.about)),
        "\n".join(described(field) for field in asked),
        "Other keywords say how it is drawn, as in `Study.save`.",
        "Examples::\n\n" + textwrap.indent("\n".join(examples(kind)), "    ") if examples(kind) else "",
    ]
    given = [*names, *(["other"] if others else []), *map(python_name, fields)]
    given += ["special", "parse_special", "progress"]
    lines = [f"    def {kind.method}(\n", *(f"        {part},\n" for part in signature), '    ) -> "Study":\n']
    lines.append(docstring(parts, 8))
    lines += [f'        return self.study(\n            "{kind.name}",\n']
    lines += [f"            {name}={name},\n" for name in given]
    return "\n" + "".join(lines) + "        )\n"


def file_method(name, first, about, result, look):
    signature = ["self", first, "*", *map(parameter, look)]
    argument = first.split(":")[0]
    lines = [f"    def {name}(\n", *(f"        {part},\n" for part in signature), f"    ) -> {result}:\n"]
    lines.append(docstring([about, "\n".join(described(field) for field in look)], 8))
    given = ", ".join(f"{field.name}={python_name(field)}" for field in look)
    call = f"return self._{name}({argument}, dict({given}))"
    lines.append(textwrap.fill(call, 110, initial_indent=" " * 8, subsequent_indent=" " * 12) + "\n")
    return "\n" + "".join(lines)


def write(package, to):
    """The module for the library that `ffi_build` finds, of the package whose sources these are."""
    kinds, taken = kinds_of(package), taken_names(package)
    methods = [method(kind) for kind in kinds.values() if kind.method not in taken]
    look = {}  # kinds without pictures have less of it, figures have more
    for field in (field for kind in kinds.values() for field in kind.fields if field.use == "look"):
        look.setdefault(field.name, field)
    about = (
        "Writes a file; its suffix says what: .png, .svg, .pdf (a picture), .html (all pictures and tables), .csv (a\n"
        "table), .json or .sqlite (all tables). What is said here is of this file alone."
    )
    files = [
        file_method("save", "path: Path", about, "None", look.values()),
        file_method("to_bytes", "format: str", 'The bytes of such a file: "png", "svg", ...', "bytes", look.values()),
    ]
    to.write_text(HEADER + METHODS + "".join(methods) + LOOK + "".join(files))
