#!/bin/sh
# Builds a wheel from an installed library, installs it into a virtual environment, and uses it where neither the build
# tree nor the source can be seen: wheel.sh. Environment: SOURCE, BUILD.
#
# The trees are hidden below an empty file system where the system lets us (unshare, as root); else it is only checked
# that nothing of them is loaded.
set -eu
python=/usr/bin/python3
$python -c 'import cffi, numpy, pip, wheel, venv, ensurepip' 2>/dev/null || {
    echo "skipped: python3-cffi, -numpy, -pip, -wheel or -venv is missing (scripts/setup.sh tests)"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { echo "wheel: $*" >&2; exit 1; }

cmake --install "$BUILD" --prefix "$work/prefix" >"$work/log" || { cat "$work/log"; exit 1; }
cp -r "$SOURCE/bindings/python" "$work/source"
PIP_DISABLE_PIP_VERSION_CHECK=1
export PIP_DISABLE_PIP_VERSION_CHECK
QKV_PREFIX=$work/prefix $python -m pip wheel --quiet --no-build-isolation --no-deps --no-index \
    -w "$work/wheels" "$work/source" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
wheel=$(ls "$work"/wheels/qkv-*-cp39-abi3-linux_*.whl) || die "no wheel for Python 3.9 and later was made"
$python -m zipfile -l "$wheel" >"$work/list"
for part in qkv/libqkv.so qkv/default.gguf qkv/py.typed qkv/_native.pyi qkv/_native.abi3.so qkv/model.py; do
    grep -q "^$part" "$work/list" || die "$part is not in the wheel"
done
rm -rf "$work/prefix" "$work/source"

$python -m venv --system-site-packages "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --no-deps --no-index "$wheel"
cat >"$work/use.py" <<'END'
import os, sys
import qkv
source, build = sys.argv[1:3]
m = qkv.open()
r = m.run("The river runs past the mill.", edits=["q@3.h1=scale:1e-3"], capture=["pattern@3", "logits[-1]"])
assert r[1]["pattern", 3].shape == (4, 9, 9) and r[1].changed == {"q@3.h1=scale:1e-3": 288}
assert m.modify(layer=3, head=1).render("png").startswith(b"\x89PNG")
loaded = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
ours = [path for path in loaded if "qkv" in os.path.basename(path) or "default.gguf" in path or "_native" in path]
assert any("libqkv" in path for path in ours)
for path in loaded:
    assert not path.startswith((source + "/", build + "/")), path
    assert "libqkv" not in path or path.startswith(sys.prefix), path
print("hidden" if not os.path.exists(os.path.join(source, "README.md")) else "seen")
END
cd "$work"
set -- "$work/venv/bin/python" "$work/use.py" "$SOURCE" "$BUILD"
if unshare --mount true 2>/dev/null; then
    # What is hidden is hidden for this process alone. The work directory lies elsewhere.
    # shellcheck disable=SC2016
    env -i PATH=/usr/bin:/bin HOME="$work" unshare --mount sh -c 'mount -t tmpfs none "$3" && exec "$@"' sh "$@" \
        >"$work/out" || die "does not work by itself"
    [ "$(cat "$work/out")" = hidden ] || die "the source was not hidden"
else
    env -i PATH=/usr/bin:/bin HOME="$work" "$@" >"$work/out" || die "does not work by itself"
fi
