#!/bin/sh
# Runs an example and looks for the files it must leave: run.sh PROGRAM MODEL [FILE...]
set -eu
program=$1 model=$2
shift 2
[ $# -eq 0 ] || rm -f "$@"
"$program" "$model"
for file in "$@"; do
    [ -s "$file" ] || { echo "$file was not written" >&2; exit 1; }
done
