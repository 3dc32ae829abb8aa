#!/bin/sh
# Runs command-line cases and compares what they say with what is expected.
#
#     run.sh [--update] CASE.sh...
#
# A case runs in an empty directory of its own, with qkv in PATH. Beside CASE.sh may lie
#
#     CASE.stdout.exact  CASE.stderr.exact     the output, byte by byte
#     CASE.stdout.glob   CASE.stderr.glob      a shell pattern for all of it; * spans lines
#     CASE.exit                                the exit status, when it is not 0
#
# An output without such a file must be empty. --update writes the .exact and .exit files anew from
# what the case does now (a .glob stays as it is): read the difference before you keep it.
#
# Environment: QKV and QKV_BENCH, the programs; MODELS, the directory with default.gguf; VECTORS, tests/vectors;
# MAKE_SWEEP, a program that makes results files of sweeps; PRINT_HELP, one that prints the help of a made-up command.
set -u
update=0
if [ "${1-}" = --update ]; then
    update=1
    shift
fi
: "${QKV:?is not set: the program}" "${MODELS:?is not set: the directory with default.gguf}"
: "${VECTORS:?is not set: the directory tests/vectors}" "${QKV_BENCH:?is not set: the program qkv-bench}"

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$QKV" "$work/bin/qkv"
ln -s "$QKV_BENCH" "$work/bin/qkv-bench"
unset QKV_MODEL HF_HOME HUGGINGFACE_HUB_CACHE
# Cases see no model of this machine.
HF_HUB_CACHE=$work/run/hub QKV_CACHE=$work/run/own
# Cases that look into files of tensors import tensors.py.
PYTHONPATH=$(cd "$(dirname "$0")" && pwd) PYTHONDONTWRITEBYTECODE=1
export MODELS QKV VECTORS HF_HUB_CACHE QKV_CACHE PYTHONPATH PYTHONDONTWRITEBYTECODE
failed=0

complain() {
    failed=1
    echo "$(basename "$expected"): not as expected: $1"
}

execute() { # leaves stdout and stderr in $work, and $status
    mkdir "$work/run"
    (
        cd "$work/run" || exit 1
        PATH=$work/bin:$PATH LC_ALL=C.UTF-8 sh "$1" >"$work/stdout" 2>"$work/stderr" </dev/null
    )
    status=$?
    rm -rf "$work/run"
}

compare_glob() {
    pattern=$(cat "$expected.$1.glob")
    text=$(cat "$work/$1")
    # shellcheck disable=SC2254 # it is meant as a pattern
    case $text in
    $pattern) ;;
    *)
        complain "$1, which should match"
        cat "$expected.$1.glob"
        echo "--- but is"
        cat "$work/$1"
        ;;
    esac
}

compare_exact() {
    if [ $update = 1 ]; then
        rm -f "$expected.$1.exact"
        if [ -s "$work/$1" ]; then cp "$work/$1" "$expected.$1.exact"; fi
    elif [ -f "$expected.$1.exact" ]; then
        diff -u "$expected.$1.exact" "$work/$1" || complain "$1"
    elif [ -s "$work/$1" ]; then
        complain "$1, which should be empty but is"
        cat "$work/$1"
    fi
}

compare_status() {
    if [ $update = 1 ]; then
        rm -f "$expected.exit"
        if [ "$status" != 0 ]; then echo "$status" >"$expected.exit"; fi
        return
    fi
    wanted=0
    if [ -f "$expected.exit" ]; then wanted=$(cat "$expected.exit"); fi
    [ "$status" = "$wanted" ] || complain "exit status $status, not $wanted"
}

for file in "$@"; do
    file=$(cd "$(dirname "$file")" && pwd)/$(basename "$file")
    expected=${file%.sh}
    execute "$file"
    for output in stdout stderr; do
        if [ -f "$expected.$output.glob" ]; then
            compare_glob $output
        else
            compare_exact $output
        fi
    done
    compare_status
done
exit $failed
