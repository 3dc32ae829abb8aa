#!/bin/sh
# Builds the package into a directory, against the library of a build tree: build.sh OUT. Environment: SOURCE, BUILD.
set -eu
out=$1
python=/usr/bin/python3
$python -c 'import cffi, numpy, pytest, setuptools' 2>/dev/null || {
    echo "skipped: python3-cffi, python3-numpy or python3-pytest is missing (scripts/setup.sh tests)"
    exit 77
}
# setuptools leaves things beside setup.py, and the source tree is to stay as it is.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$SOURCE/bindings/python" "$work/python"
cd "$work/python"
rm -rf "$out"
QKV_INCLUDE_DIR=$SOURCE/include QKV_LIB_DIR=$BUILD QKV_BUNDLE=0 QKV_DEFAULT_MODEL=$SOURCE/models/default.gguf \
    $python -W ignore setup.py -q build --build-base "$work/build" --build-lib "$out" >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
}
