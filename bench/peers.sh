#!/bin/sh
# Compares plain forward passes with llama.cpp's and PyTorch's: see peers.py, which gets all arguments.
#
#     bench/peers.sh [--tokens 128,512] [--rounds 5] [--models DIR]
#
# llama-bench is built once, for this processor, from the llama.cpp source that set-up fetched for ggml. PyTorch is used
# where Debian's python3-torch is installed.
# Environment: QKV, the program (build/qkv); QKV_DEPS, as for scripts/setup.sh.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
qkv=${QKV:-$root/build/qkv}
deps=${QKV_DEPS:-$root/.deps}
bench=$deps/llama-bench/bin/llama-bench

[ -x "$qkv" ] || { echo "peers.sh: $qkv is not there: run make first" >&2; exit 1; }
[ -x /usr/bin/python3 ] || { echo "peers.sh: needs python3" >&2; exit 1; }
QKV_DEPS=$deps "$root/scripts/setup.sh" tests

build_llama_bench() {
    echo "peers.sh: building llama-bench" >&2
    cmake -S "$deps/llama.cpp" -B "$deps/llama-bench" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
        -DGGML_NATIVE=ON -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF \
        -DLLAMA_BUILD_MTMD=OFF -DLLAMA_BUILD_UI=OFF
    cmake --build "$deps/llama-bench" --target llama-bench
}

if [ ! -x "$bench" ] && ! build_llama_bench >"$deps/llama-bench.log"; then
    echo "peers.sh: could not build llama-bench, see $deps/llama-bench.log; llama.cpp is left out" >&2
    bench=
fi
exec /usr/bin/python3 "$root/bench/peers.py" "$qkv" ${bench:+"$bench"} "$@"
