#!/bin/sh
# Checks the types of a package that build.sh has built with mypy, strictly, and a program that uses it: types.sh BUILT.
# Environment: SOURCE.
set -eu
built=$1
[ -d "$built/qkv" ] || { echo "skipped: the Python package could not be built here"; exit 77; }
command -v mypy >/dev/null 2>&1 || { echo "skipped: mypy is missing (scripts/setup.sh tests)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/qkv"
cp "$built"/qkv/*.py "$built"/qkv/*.pyi "$built"/qkv/py.typed "$work/qkv"
cp "$SOURCE/bindings/python/pyproject.toml" "$work"
cp "$SOURCE/bindings/python/tests/typed_program.py" "$work"
cd "$work"
mypy --config-file pyproject.toml --cache-dir "$work/cache" -p qkv
mypy --strict --cache-dir "$work/cache" typed_program.py
# Mistakes are found: a layer is a number, and so is the `top` of a study; a distance is one of a few words.
expect_mistake() {
    sed "$1" typed_program.py >wrong_program.py
    if mypy --strict --cache-dir "$work/cache" wrong_program.py >wrong.log; then
        echo "a wrong type was not found: $1"
        exit 1
    fi
    grep -q "$2" wrong.log || { cat wrong.log; exit 1; }
}
expect_mistake 's/layer=3/layer="three"/' 'Argument "layer"'
expect_mistake 's/top=3/top="three"/' 'Argument "top"'
expect_mistake 's/distance="js"/distance="far"/' 'Argument "distance"'
expect_mistake 's/answer=/anser=/' 'argument "anser"'
