#!/bin/sh
# Builds a wheel from a build tree, installs it into a virtual environment, and uses it where neither the build tree
# nor the source can be seen: wheel.sh. Then installs the package as `make python VENV=DIR` does, into an ordinary
# virtual environment, and runs the line that is printed. Environment: SOURCE, BUILD.
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
PIP_DISABLE_PIP_VERSION_CHECK=1
export PIP_DISABLE_PIP_VERSION_CHECK

"$SOURCE/scripts/python.sh" wheel "$BUILD" "$work/wheels" >"$work/log" || { cat "$work/log"; exit 1; }
wheel=$(ls "$work"/wheels/qkv-*-cp39-abi3-linux_*.whl) || die "no wheel for Python 3.9 and later was made"
# No tag says which instructions a library needs: the version does.
if grep -q '^QKV_NATIVE:BOOL=ON' "$BUILD/CMakeCache.txt"; then
    case $wheel in *+native-*) ;; *) die "$wheel does not say that it is for this processor" ;; esac
else
    case $wheel in *+native-*) die "$wheel says that it is for this processor alone" ;; esac
fi
$python -m zipfile -l "$wheel" >"$work/list"
for part in qkv/libqkv.so qkv/default.gguf qkv/py.typed qkv/_native.pyi qkv/_native.abi3.so qkv/model.py qkv/_studies.py \
    qkv/recipes/ships.json; do
    grep -q "^$part" "$work/list" || die "$part is not in the wheel"
done

# The guide names every library that the system must have.
libraries=$(sed -n '/What the library itself needs/,/^$/p' "$SOURCE/docs/python.md" | tr '\n' ' ')
readelf -d "$BUILD/libqkv.so" | sed -n 's/.*NEEDED.*\[\(.*\)\].*/\1/p' >"$work/needed"
while read -r needed; do
    case $needed in
    libpango*) name=pango ;;
    libgobject* | libglib*) name=GLib ;;
    libcairo*) name=cairo ;;
    libpng*) name=libpng ;;
    libjansson*) name=jansson ;;
    libpcre2*) name=PCRE2 ;;
    libutf8proc*) name=utf8proc ;;
    libxxhash*) name=xxhash ;;
    libsqlite3*) name=SQLite ;;
    libcurl*) name=libcurl ;;
    libcrypto*) name=OpenSSL ;;
    libmicrohttpd*) name=libmicrohttpd ;;
    libopenblas* | liblapack* | libblas*) name=OpenBLAS ;;
    libgomp*) name=libgomp ;;
    libstdc++*) name=libstdc++ ;;
    libgcc_s* | libm.* | libc.* | ld-linux*) continue ;;
    *) die "docs/python.md does not name $needed" ;;
    esac
    case $libraries in *"$name"*) ;; *) die "docs/python.md does not name $name, for $needed" ;; esac
done <"$work/needed"

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

# ---- make python VENV=DIR, with a directory of wheels in place of an index ----

cat >"$work/pack.py" <<'END'
"""The system's own numpy and cffi as wheels: pack.py OUT."""
import sys, zipfile
from pathlib import Path
import _cffi_backend, cffi, numpy
tag = "cp%d%d" % sys.version_info[:2]
for module, single in ((numpy, None), (cffi, _cffi_backend.__file__)):
    name, version, top = module.__name__, module.__version__, Path(module.__file__).parent
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(Path(sys.argv[1], f"{name}-{version}-{tag}-{tag}-linux_x86_64.whl"), "w") as wheel:
        for path in sorted(top.rglob("*")):
            if path.is_file() and not {"tests", "__pycache__"} & set(path.parts):
                wheel.write(path, Path(name, path.relative_to(top)))
        if single:
            wheel.write(single, Path(single).name)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}-{tag}-linux_x86_64\n")
        wheel.writestr(f"{info}/RECORD", "")
END
mkdir "$work/index"
$python "$work/pack.py" "$work/index"
install_here() { # VENV INDEX
    env -u PIP_FIND_LINKS PIP_NO_INDEX=1 ${2:+PIP_FIND_LINKS="$2"} "$SOURCE/scripts/python.sh" install "$BUILD" \
        /usr/local "$1" >"$work/said" 2>"$work/problem"
}
$python -m venv "$work/ordinary"
if install_here "$work/ordinary" ""; then die "says that it is installed where numpy is missing"; fi
[ "$(wc -l <"$work/problem")" -eq 1 ] || { cat "$work/problem"; die "more than one line"; }
grep -q 'needs numpy and cffi' "$work/problem" || { cat "$work/problem"; die "does not say what is missing"; }
if "$work/ordinary/bin/python" -c 'import qkv' 2>/dev/null; then die "something was installed all the same"; fi
# An index is enough, and without one, what the message says to do.
remedy=$(sed 's/.*of the system: //' "$work/problem")
$python -m venv "$work/with_index"
sh -c "$remedy" || die "the remedy fails"
for venv in with_index ordinary new; do
    index=
    [ $venv != with_index ] || index=$work/index
    install_here "$work/$venv" "$index" || { cat "$work/problem"; die "not installed into $venv"; }
    sed 1d "$work/said" >"$work/line.sh"
    (cd / && env -i PATH=/usr/bin:/bin HOME="$work" sh "$work/line.sh") >"$work/out" || die "the printed line fails"
    grep -q 'qkv.Result: unedited run of 6 tokens' "$work/out" || die "the printed line shows something else"
done
