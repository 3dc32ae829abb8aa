#!/bin/sh
# Draws both figures with the default model into demo/ and says where they are.
set -eu
cd "$(dirname "$0")/.."
mkdir -p demo
for figure in modify mean; do
    build/qkv figure $figure -o demo/$figure.png -o demo/$figure.svg -o demo/$figure.pdf
done
echo "The two figures, each as PNG, SVG and PDF:"
for figure in modify mean; do echo "  $(pwd)/demo/$figure.png"; done
