#!/bin/sh
# Draws the README's figures anew: those of TinyLlama, which is pulled where it is not there, and those of the default
# model. Its two charts come from the sweep that the README shows.
set -eu
cd "$(dirname "$0")/.."
build/qkv pull tinyllama
for figure in modify mean; do
    build/qkv figure $figure -m tinyllama -o docs/images/tinyllama-$figure.png
    build/qkv figure $figure -o docs/images/$figure.png
done
