#!/bin/sh
# Runs pytest on a package that build.sh has built: run.sh BUILT ARGUMENTS... Where none could be built, skips.
set -eu
built=$1
shift
[ -d "$built/qkv" ] || { echo "skipped: the Python package could not be built here"; exit 77; }
package=$SOURCE/bindings/python
exec /usr/bin/python3 -m pytest -p no:cacheprovider -c "$package/pyproject.toml" --rootdir "$package" "$@"
