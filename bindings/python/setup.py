"""Builds the module, writes the methods of studies (study_methods.py), and puts libqkv, the default model and the
recipes beside them, so that a wheel needs none of them elsewhere.

QKV_BUNDLE=0 leaves the library where it was installed; QKV_DEFAULT_MODEL names another model to carry.
"""
import os
import re
import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

try:
    from wheel.bdist_wheel import bdist_wheel
except ImportError:
    bdist_wheel = None

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here))
import ffi_build  # noqa: E402
import study_methods  # noqa: E402


def version():
    """That of the library's header: the two are released together. With "+native" where a wheel would carry a library
    that was built for this processor alone, because no tag of a wheel says so."""
    include, _ = ffi_build.places()
    for directory in include:
        header = Path(directory, "qkv", "version.h")
        if header.exists():
            number = re.search(r'^#define QKV_VERSION "([^"]+)"', header.read_text(), re.M).group(1)
            return number + ("+native" if carries_native_library() else "")
    raise SystemExit("qkv/version.h was not found")


def carries_native_library():
    """Only qkv.pc says otherwise."""
    if os.environ.get("QKV_BUNDLE", "1") == "0":
        return False
    return bool(os.environ.get("QKV_LIB_DIR")) or ffi_build.pkg_config("--variable=processor") != ["any"]


def default_model():
    given = os.environ.get("QKV_DEFAULT_MODEL")
    if given:
        return Path(given)
    _, lib = ffi_build.places()
    candidates = [here.parent.parent / "models" / "default.gguf"]
    for directory in lib:
        candidates += [parent / "share" / "qkv" / "default.gguf" for parent in Path(directory).parents]
    return next((path for path in candidates if path.exists()), None)


def recipes():
    """Those beside the headers: of a source tree, or as they are installed."""
    include, _ = ffi_build.places()
    parents = [Path(directory).resolve().parent for directory in include]
    places = [parent / part for parent in parents for part in ("recipes", "share/qkv/recipes")]
    found = next((place for place in places if (place / "prompts.txt").exists()), None)
    if found is None:
        raise SystemExit("the recipes were not found beside the library's headers")
    return found


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        target = Path(self.build_lib, "qkv")
        target.mkdir(parents=True, exist_ok=True)
        model = default_model()
        if model is None:
            raise SystemExit("the default model was not found; say where it is with QKV_DEFAULT_MODEL")
        shutil.copyfile(model, target / "default.gguf")
        shutil.copytree(recipes(), target / "recipes", dirs_exist_ok=True)
        study_methods.write(here / "qkv", target / "_studies.py")
        if os.environ.get("QKV_BUNDLE", "1") != "0":
            self.copy_library(target)

    def copy_library(self, target):
        """Under the name that the module asks for."""
        _, lib = ffi_build.places()
        library = next((Path(d, "libqkv.so").resolve() for d in lib if Path(d, "libqkv.so").exists()), None)
        if library is None:
            raise SystemExit("libqkv.so was not found")
        soname = ".".join(library.name.split(".")[:3])  # libqkv.so.0
        shutil.copyfile(library, target / soname)


commands = {"build_py": BuildWithLibrary}
if bdist_wheel is not None:

    class StableWheel(bdist_wheel):
        """The module uses the stable interface of Python: one wheel for 3.9 and later."""

        def finalize_options(self):
            self.py_limited_api = "cp39"
            super().finalize_options()

    commands["bdist_wheel"] = StableWheel

setup(version=version(), cffi_modules=["ffi_build.py:ffibuilder"], cmdclass=commands)
