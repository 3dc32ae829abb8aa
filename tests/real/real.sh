#!/bin/sh
# Holds qkv run to what transformers computed with a real model: real.sh CASE.
#
# A case is the short name of a model, or tinyllama_directory: the same weights, dequantised, as a Hugging Face
# directory. The model is pulled and stays in qkv's own folder of models. Where the registry cannot be reached, and the
# model is not there, the test is skipped (77) and the line that begins with "skipped:" says why.
#
# Environment: QKV, the program; RESULTS and DIRECTORY, the programs of real_results.c and real_directory.c.
set -eu
: "${QKV:?is not set: the program}" "${RESULTS:?is not set: real_results}" "${DIRECTORY:?is not set: real_directory}"
here=$(cd "$(dirname "$0")" && pwd)
case=$1
name=${case%_directory}
expected=$here/$name.safetensors
models=${QKV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/qkv}/models
work=$(mktemp -d "${TMPDIR:-/tmp}/qkv-real-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
# Two answers that do not come are enough.
export npm_config_fetch_retries=1 npm_config_fetch_retry_mintimeout=2000

skip() {
    echo "skipped: $*"
    exit 77
}

pull() {
    "$QKV" pull "$name" >"$work/pull.out" 2>"$work/pull.log" && return
    # A registry that answers is not a reason to skip.
    npm view npm version >/dev/null 2>&1 || skip "$case: $(tail -n 1 "$work/pull.log")"
    "$QKV" pull "$name"
}

# Its tokens, with commas, of a text.
tokens() {
    "$QKV" tokens -m "$1" "$2" | awk 'NR > 1 { printf "%s%s", n++ ? "," : "", $2 } END { print "" }'
}

# The text of another model's results gives the same ids where both have one vocabulary.
check_tokens() {
    wanted=$("$RESULTS" get "$here/$2.safetensors" ids)
    got=$(tokens "$1" "$("$RESULTS" get "$here/$2.safetensors" text)")
    [ "$got" = "$wanted" ] || { echo "tokens are $got, and should be $wanted"; exit 1; }
}

run() { # MODEL, LAST: what to capture besides the patterns
    set -- -m "$1" --capture pattern --capture "$2"
    "$RESULTS" get "$expected" edits >"$work/edits"
    while read -r edit; do set -- "$@" --variant "$edit"; done <"$work/edits"
    "$QKV" run "$@" --tokens "$("$RESULTS" get "$expected" ids)" -o "$work/out.safetensors"
    "$RESULTS" compare "$expected" "$work/out.safetensors"
}

check_greedy() {
    "$QKV" run -m "$1" --tokens "$("$RESULTS" get "$expected" forced)" --capture logits -o "$work/greedy.safetensors"
    "$RESULTS" greedy "$expected" "$work/greedy.safetensors"
    "$QKV" generate -m "$1" --tokens "$("$RESULTS" get "$expected" ids)" -n 24 -o "$work/greedy.jsonl" >"$work/text"
    "$RESULTS" generated "$expected" "$work/greedy.jsonl"
}

pull
case $case in
minilm)
    check_tokens "$models/minilm" minilm
    run "$models/minilm" resid_post@5
    ;;
tinyllama_directory)
    need=4500000
    have=$(df -Pk "$work" | awk 'NR == 2 { print $4 }')
    [ "$have" -gt $need ] || skip "$case: $((need / 1000)) MB are needed in $work, $((have / 1000)) MB are free"
    mkdir "$work/model"
    "$DIRECTORY" "$models/tinyllama/tinyllama.gguf" "$work/model"
    run "$work/model" 'logits[-1]'
    ;;
*)
    # stories15m has Llama 2's vocabulary, as TinyLlama; the ids of its own results are of another one.
    check_tokens "$models/$name/$name.gguf" tinyllama
    run "$models/$name/$name.gguf" 'logits[-1]'
    check_greedy "$models/$name/$name.gguf"
    ;;
esac
