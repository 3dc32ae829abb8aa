#!/bin/sh
# Builds the fuzzers with clang and runs them one after the other, each from its corpus.
#
#   scripts/fuzz.sh [SECONDS [NAME ...]]     SECONDS for each of them (default 60); NAME as in tests/fuzz/fuzz_NAME.c
#
# What they learn is kept in build-fuzz/found/NAME, so that a second run resumes where the first one ended; an input
# that breaks something is written to build-fuzz/found/NAME-crash-... and ends the script with an error. Fix it, and add
# the input to tests/fuzz/corpus/NAME under a name that says what it is.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift

scripts/setup.sh fuzz
cmake --preset fuzz -DQKV_NATIVE="${QKV_NATIVE:-ON}" >/dev/null
cmake --build build-fuzz --target fuzzers -j "$(nproc)"

names=${*:-$(for f in tests/fuzz/fuzz_*.c; do n=${f##*/fuzz_}; echo "${n%.c}"; done)}
# ggml and OpenBLAS would start threads, which inputs this small do not need.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
TMPDIR=$(mktemp -d "/dev/shm/qkv-fuzz-XXXXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
status=0
for name in $names; do
    mkdir -p "build-fuzz/found/$name"
    dict=tests/fuzz/$name.dict
    [ -f "$dict" ] && dict=-dict=$dict || dict=
    echo "fuzz_$name, $seconds s"
    # Limits of memory and time are what a hostile file of this size must never reach.
    "build-fuzz/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -max_len=16384 -timeout=5 -rss_limit_mb=1024 \
        -malloc_limit_mb=64 -print_final_stats=1 ${dict:+"$dict"} -artifact_prefix="build-fuzz/found/$name-" \
        "build-fuzz/found/$name" "tests/fuzz/corpus/$name" >"build-fuzz/found/$name.log" 2>&1 || {
        status=1
        tail -n 40 "build-fuzz/found/$name.log" >&2
    }
    grep -E '^#[0-9]+.*DONE|^stat::(number_of_executed|average|peak)' "build-fuzz/found/$name.log" || true
done
exit $status
