#!/bin/sh
# Draws both figures into demo/, says where they are and how to continue: with the default model, or with the one that is
# named, which is pulled where it is not there.
#
#   scripts/demo.sh [MODEL]        a short name (tinyllama), org/name, a GGUF file or a directory
set -eu
cd "$(dirname "$0")/.."
model=${1:-}
start=
set --
if [ -n "$model" ]; then
    [ -e "$model" ] || build/qkv info -m "$model" >/dev/null 2>&1 || build/qkv pull "$model"
    start=$(basename "$model" .gguf | tr -c 'A-Za-z0-9._\n-' _)-
    set -- -m "$model"
fi
mkdir -p demo
for figure in modify mean; do
    out=demo/$start$figure
    build/qkv figure $figure "$@" -o "$out.png" -o "$out.svg" -o "$out.pdf"
done
echo "The two figures, each as PNG, SVG and PDF:"
for figure in modify mean; do echo "  $(pwd)/demo/$start$figure.png"; done
echo
echo "To call the program qkv, put it on the PATH of this shell:"
echo "  export PATH=\"$(pwd)/build:\$PATH\""
echo "Then draw with a model of yours, or fetch one (qkv pull tinyllama):"
echo "  qkv figure modify -m FILE.gguf -o modify.png"
