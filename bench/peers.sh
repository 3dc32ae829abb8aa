#!/bin/sh
# Compares plain forward passes with llama.cpp's and PyTorch's: see peers.py and quantised.py, which get all arguments.
#
#     bench/peers.sh [--tokens 128,512] [--rounds 5] [--models DIR]                              F32, two shapes
#     bench/peers.sh quantised [--types q8_0,q4_K] [--tokens 16,128,512] [--rounds 5] [...]      other types, 1.2 B weights
#     bench/peers.sh generate [--types f32,q8_0] [--tokens 32] [--rounds 5] [...]      one more token of a text
#
# The second one also measures TinyLlama in IQ2_XXS, where `qkv pull tinyllama` has brought it.
# llama-bench is built once, for this processor, from the llama.cpp source that set-up fetched for ggml. PyTorch is used
# where Debian's python3-torch is installed.
# Environment: QKV, the program (build/qkv), which qkv-bench lies beside; QKV_DEPS, as for scripts/setup.sh.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
qkv=${QKV:-$root/build/qkv}
deps=${QKV_DEPS:-$root/.deps}
bench=$deps/llama-bench/bin/llama-bench

[ -x "$(dirname "$qkv")/qkv-bench" ] || { echo "peers.sh: no qkv-bench beside $qkv: run make build-bench first" >&2; exit 1; }
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
case ${1:-} in
quantised | generate) script=$1.py ;;
*) script= ;;
esac
if [ -z "$script" ]; then
    exec /usr/bin/python3 "$root/bench/peers.py" "$qkv" ${bench:+"$bench"} "$@"
fi
shift
[ -n "$bench" ] || { echo "peers.sh: nothing to compare quantised weights with" >&2; exit 1; }
real=$("$qkv" info -m tinyllama 2>/dev/null | sed -n "s/^file   *//p") || real=
[ -n "$real" ] || echo "peers.sh: TinyLlama is not here (qkv pull tinyllama): iq2_xxs and the figure are left out" >&2
exec /usr/bin/python3 "$root/bench/$script" "$qkv" "$bench" ${real:+--real "$real"} "$@"
