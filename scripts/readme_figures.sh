#!/bin/sh
# The pictures of README and docs: what draws them, and whether they still come out the same. Everything that qkv drew
# in docs/images is listed here once, with the options that draw it.
#
#   scripts/readme_figures.sh                    draw all of them; TinyLlama is pulled where it is not there
#   scripts/readme_figures.sh default            draw those of the default model alone
#   scripts/readme_figures.sh --check default    make those of the default model again from the recipes they carry, and
#   scripts/readme_figures.sh --check tinyllama  compare the numbers; the same for those of TinyLlama
#
# A check fails too when a picture is of another command than the one below, holds a path of the machine it was drawn
# on, or is not listed. It ends with 77 where the model is not on this machine. QKV names the program (build/qkv).
set -eu
cd "$(dirname "$0")/.."
qkv=${QKV:-build/qkv}
images=docs/images
work=$(mktemp -d "${TMPDIR:-/tmp}/qkv-pictures-XXXXXX")
trap 'rm -rf "$work"' EXIT
results=$work/results.sqlite

mill="The river runs past the old mill."
street="The street was quiet in the morning. A baker carried warm bread to the shop at the corner, and two children \
walked to school with their bags. Later it rained, and the water ran along the stones to the old well."

swim_river="The river runs past the city, and people swim in the"
swim_church="The church runs past the city, and people swim in the"

# Calls HANDLER NAME MODEL COMMAND... for every picture.
pictures() {
    "$1" tinyllama-modify tinyllama figure modify -m tinyllama
    "$1" tinyllama-mean tinyllama figure mean -m tinyllama
    "$1" modify default figure modify
    "$1" mean default figure mean
    "$1" lines default plot "$results" --metric first_column --target q --by layer
    "$1" heatmap default plot "$results" --metric first_column --kind heatmap --epsilon 0.01 --change
    "$1" tinyllama-lens tinyllama lens -m tinyllama -p "The river runs past the old mill and down to the" --dpi 85
    # docs/patching.md
    "$1" patch default patch --clean "$swim_river" --corrupt "$swim_church" --metric 'logit_diff: river/ church' --dpi 110
    "$1" patch-paths default patch --clean "$swim_river" --corrupt "$swim_church" --metric 'logit_diff: river/ church' \
        --receiver v@3.h2 --dpi 110
    # docs/reading-figures.md
    "$1" reading-sink default figure grid -p "$mill" --layer 5 --head 0 --col "Unmodified=" \
        --col "Query set to zero=q@5.h0=zero" --dpi 110
    "$1" reading-heads default figure heads -p "$mill" --dpi 90
    "$1" reading-diff default figure grid -p "$mill" --layer 5 --head 0 --col "Half the query=q@5.h0=scale:0.5" \
        --col "First key taken away=pattern@5.h0[:,0]=set:0" --diff --dpi 110
    "$1" reading-long default figure grid -p "$street" --layer 3 --head 1 --col "Unmodified=" \
        --col "Half the query=q@3.h1=scale:0.5" --dpi 110
}

sweep() {
    "$qkv" sweep --quiet -f recipes/prompts.txt --targets none,q,k,v --epsilon logspace:1e-4,1,13 \
        --metrics first_column,tv -o "$results"
}

draw() {
    name=$1 model=$2
    shift 2
    [ "$only" = all ] || [ "$only" = "$model" ] || return 0
    "$qkv" "$@" -o "$images/$name.png" >/dev/null
}

bad() {
    echo "$images/$name.png $1" >&2
    failed=1
}

# The command line that a picture says it was drawn with.
command_of() {
    "$qkv" recipe extract "$1" | sed 's/.*"command":\(\[.*\]\),"\(model\|results\)":".*/\1/'
}

check() {
    name=$1 model=$2
    shift 2
    listed="$listed $name"
    [ "$only" = "$model" ] || return 0
    file=$images/$name.png
    "$qkv" "$@" -o "$work/$name.png" >/dev/null 2>"$work/log" || { cat "$work/log" >&2; bad "cannot be drawn"; return 0; }
    [ "$(command_of "$file")" = "$(command_of "$work/$name.png")" ] || bad "was drawn by another command"
    case $("$qkv" recipe extract "$file" | grep -o '"\(model\|results\)":"[^"]*"') in */*) bad "holds a path" ;; esac
    if [ "$1" = plot ]; then set -- --results "$results"; else set --; fi
    said=$("$qkv" reproduce "$file" --check "$@" 2>&1) || bad "does not come out again: $said"
}

not_listed() {
    for file in "$images"/*.png; do
        name=$(basename "$file" .png)
        case " $listed " in *" $name "*) ;; *) bad "is not in scripts/readme_figures.sh" ;; esac
    done
}

if [ "${1:-}" = --check ]; then
    only=${2:?which model: default or tinyllama}
    if [ "$only" != default ] && ! "$qkv" info -m "$only" >/dev/null 2>&1; then
        echo "skipped: $only is not on this machine (qkv pull $only)"
        exit 77
    fi
    failed=0
    listed=explorer # a screenshot: tests/browser/screenshot.mjs
    [ "$only" != default ] || sweep
    pictures check
    not_listed
    exit $failed
fi
only=${1:-all}
[ "$only" = default ] || "$qkv" pull tinyllama
sweep
pictures draw
