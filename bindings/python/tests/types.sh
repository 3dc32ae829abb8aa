#!/bin/sh
# Checks the package's types with mypy, strictly, and a program that uses it: types.sh. Environment: SOURCE.
set -eu
command -v mypy >/dev/null 2>&1 || { echo "skipped: mypy is missing (scripts/setup.sh tests)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$SOURCE/bindings/python/qkv" "$SOURCE/bindings/python/pyproject.toml" "$work"
cp "$SOURCE/bindings/python/tests/typed_program.py" "$work"
cd "$work"
mypy --config-file pyproject.toml --cache-dir "$work/cache" -p qkv
mypy --strict --cache-dir "$work/cache" typed_program.py
# A mistake is found: a layer is a number.
sed 's/layer=3/layer="three"/' typed_program.py >wrong_program.py
if mypy --strict --cache-dir "$work/cache" wrong_program.py >wrong.log; then
    echo "a wrong type was not found"
    exit 1
fi
grep -q 'Argument "layer"' wrong.log || { cat wrong.log; exit 1; }
