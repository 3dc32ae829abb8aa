#!/bin/sh
# Builds the Python package as a wheel, which carries the library, and installs it: python.sh BUILD PREFIX [VENV]
#
# With VENV, into that virtual environment, which is made where there is none (with the system's packages: numpy,
# cffi). Else below PREFIX: /usr/local is where Debian's python3 looks by itself; for another one PYTHONPATH is
# printed. The wheel stays in BUILD/wheel.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
prefix=$2
venv=${3:-}
python=/usr/bin/python3
PIP_DISABLE_PIP_VERSION_CHECK=1
export PIP_DISABLE_PIP_VERSION_CHECK
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >"$work/log" || { cat "$work/log" >&2; exit 1; }
# setuptools leaves things beside setup.py.
cp -r "$root/bindings/python" "$work/source"
rm -rf "$build/wheel"
QKV_PREFIX=$work/prefix $python -m pip wheel --quiet --no-build-isolation --no-deps --no-index \
    -w "$build/wheel" "$work/source" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
wheel=$(ls "$build"/wheel/qkv-*.whl)
echo "python: built $wheel"

if [ -n "$venv" ]; then
    [ -x "$venv/bin/python" ] || $python -m venv --system-site-packages "$venv"
    "$venv/bin/python" -m pip install --quiet --no-deps --no-index --force-reinstall "$wheel"
    echo "python: installed into $venv: $venv/bin/python -c 'import qkv'"
    exit 0
fi
if [ "$prefix" = /usr/local ]; then
    target=$($python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
else
    target=$prefix/lib/python$($python -c 'import sys; print("%d.%d" % sys.version_info[:2])')/site-packages
fi
$python -m pip install --quiet --no-deps --no-index --root-user-action=ignore --upgrade --target "$target" "$wheel"
echo "python: installed into $target"
[ "$prefix" = /usr/local ] || echo "python: export PYTHONPATH=$target"
