#!/bin/sh
# Measures, and keeps the results: bench/results/NAME.json for every comparison below.
#
#     bench/run.sh [NAME...]
#
# Environment: QKV_BENCH, the program (build/qkv-bench); MODELS, where models with random weights are kept
# between runs (else they are made anew each time); THREADS and ROUNDS, as for qkv-bench.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
bench=${QKV_BENCH:-$root/build/qkv-bench}
results=$root/bench/results
threads=${THREADS:-0}
rounds=${ROUNDS:-9}

# What is compared in one run, interleaved.
options() {
    case $1 in
    shapes) echo "--shape gpt2-124m --shape smollm-135m" ;;
    length512) echo "--shape gpt2-124m --shape smollm-135m -T 512" ;;
    types) echo "--shape gpt2-124m --type f32 --type f16 --type q8_0 --type q4_K" ;;
    long) echo "--shape smollm-135m -T 16384 --only load,forward-last" ;;
    *)
        echo "run.sh: no comparison '$1'; there are shapes, length512, types, long" >&2
        exit 2
        ;;
    esac
}

[ -x "$bench" ] || { echo "run.sh: $bench is not there: run make build-bench first" >&2; exit 1; }
[ $# -gt 0 ] || set -- shapes length512 types
mkdir -p "$results"
for name in "$@"; do
    given=$(options "$name")
    echo "$name: qkv-bench $given" >&2
    # shellcheck disable=SC2086 # words
    "$bench" $given -t "$threads" --repeats "$rounds" ${MODELS:+--keep "$MODELS"} --json \
        >"$results/$name.json.part" || { rm -f "$results/$name.json.part"; exit 1; }
    mv "$results/$name.json.part" "$results/$name.json"
    echo "$results/$name.json"
done
