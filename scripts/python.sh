#!/bin/sh
# The Python package: a wheel that carries the library of a build tree.
#
#   python.sh wheel BUILD OUT             builds the wheel into the directory OUT
#   python.sh install BUILD PREFIX [VENV] builds it and installs it on this machine
#
# With VENV, into that virtual environment, which is made where there is none (with the system's packages: numpy,
# cffi); one that is there gets numpy and cffi from pip where it has none. Else below PREFIX: /usr/local is where
# Debian's python3 looks by itself; for another one PYTHONPATH is printed.
#
# A library that uses all instructions of this processor makes a wheel with "+native" in its version, which is not
# kept: `make wheel` builds one for any x86-64.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
python=/usr/bin/python3
PIP_DISABLE_PIP_VERSION_CHECK=1
export PIP_DISABLE_PIP_VERSION_CHECK
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { echo "python: $*" >&2; exit 1; }
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; die "$1 failed"; }; }

# The line that shows that it works; printed as it was run.
try='import qkv; print(qkv.open().run("The river runs."))'

build_wheel() {
    build=$(cd "$1" && pwd)
    quietly cmake --install "$build" --prefix "$work/prefix"
    # setuptools leaves things beside setup.py.
    cp -r "$root/bindings/python" "$work/source"
    rm -rf "$2"
    quietly env QKV_PREFIX="$work/prefix" $python -m pip wheel --quiet --no-build-isolation --no-deps --no-index \
        -w "$2" "$work/source"
    wheel=$(ls "$2"/qkv-*.whl)
}

install_into_environment() {
    venv=$1
    [ -x "$venv/bin/python" ] || quietly $python -m venv --system-site-packages "$venv"
    # Asks no index for installed packages.
    "$venv/bin/python" -m pip install --quiet 'numpy>=1.24' 'cffi>=1.15' >"$work/log" 2>&1 ||
        die "$venv needs numpy and cffi, and pip could not install them; to use those of the system:" \
            "$python -m venv --system-site-packages $venv"
    quietly "$venv/bin/python" -m pip install --quiet --no-deps --no-index --force-reinstall "$wheel"
    quietly "$venv/bin/python" -c "$try"
    echo "python: installed into $venv; try:"
    echo "$venv/bin/python -c '$try'"
}

install_below() {
    prefix=$1
    if [ "$prefix" = /usr/local ]; then
        target=$($python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
    else
        target=$prefix/lib/python$($python -c 'import sys; print("%d.%d" % sys.version_info[:2])')/site-packages
    fi
    quietly $python -m pip install --quiet --no-deps --no-index --root-user-action=ignore --upgrade \
        --target "$target" "$wheel"
    quietly env PYTHONPATH="$target" $python -c "$try"
    echo "python: installed into $target; try:"
    [ "$prefix" = /usr/local ] || echo "export PYTHONPATH=$target"
    echo "$python -c '$try'"
}

case ${1:-} in
wheel)
    build_wheel "$2" "$3"
    echo "python: built $wheel"
    ;;
install)
    build_wheel "$2" "$work/wheel"
    if [ -n "${4:-}" ]; then install_into_environment "$4"; else install_below "$3"; fi
    ;;
*) die "wheel BUILD OUT, or install BUILD PREFIX [VENV]" ;;
esac
