#!/bin/sh
# Runs the example of a header in a directory of its own, where model.gguf is the default model:
#     run.sh PROGRAM DIRECTORY MODEL [FILE...]
# Files, which other examples have left, are copied there.
set -eu
program=$1 directory=$2 model=$3
shift 3
rm -rf "$directory"
mkdir -p "$directory"
ln -s "$model" "$directory/model.gguf"
[ $# -eq 0 ] || cp "$@" "$directory"
# Examples see no model of this machine.
export HF_HUB_CACHE="$directory/hub" QKV_CACHE="$directory/own"
cd "$directory"
"$program" >stdout
