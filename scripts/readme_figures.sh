#!/bin/sh
# Draws the README's figures anew: those of TinyLlama, which is pulled where it is not there, those of the default
# model, and the two charts of the sweep that the README shows.
#
#   scripts/readme_figures.sh              draw them
#   scripts/readme_figures.sh --check      does each hold its recipe, and no path of the machine it was drawn on?
set -eu
cd "$(dirname "$0")/.."
if [ "${1:-}" = --check ]; then
    for file in docs/images/*.png; do
        model=$(grep -ao '"model":"[^"]*"' "$file") || { echo "$file holds no recipe" >&2; exit 1; }
        case $model in */*) echo "$file holds a path: $model" >&2; exit 1 ;; esac
    done
    exit 0
fi
build/qkv pull tinyllama
for figure in modify mean; do
    build/qkv figure $figure -m tinyllama -o docs/images/tinyllama-$figure.png
    build/qkv figure $figure -o docs/images/$figure.png
done

work=$(mktemp -d "${TMPDIR:-/tmp}/qkv-readme-XXXXXX")
trap 'rm -rf "$work"' EXIT
build/qkv sweep -f recipes/prompts.txt --targets none,q,k,v --epsilon logspace:1e-4,1,13 --metrics first_column,tv \
    -o "$work/results.sqlite"
build/qkv plot "$work/results.sqlite" --metric first_column --target q --by layer -o docs/images/lines.png
build/qkv plot "$work/results.sqlite" --metric first_column --kind heatmap --epsilon 0.01 --change -o docs/images/heatmap.png
