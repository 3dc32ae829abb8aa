#!/bin/sh
# `make wheel`: a wheel for any x86-64. Its library holds no instruction that not all of them have, its name says
# nothing of one processor, and it works. Environment: SOURCE.
set -eu
[ "$(uname -m)" = x86_64 ] || { echo "skipped: not an x86-64"; exit 77; }
python=/usr/bin/python3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { echo "any_processor: $*" >&2; exit 1; }
make -C "$SOURCE" wheel >"$work/log" 2>&1 || { tail -n 20 "$work/log"; die "make wheel failed"; }
wheel=$(ls "$SOURCE"/build-wheel/wheel/qkv-*-cp39-abi3-linux_x86_64.whl) || die "there is no wheel"
case $wheel in *+native*) die "$wheel is for this processor" ;; esac
$python -m zipfile -e "$wheel" "$work/out"
# Registers and instructions of SSE3 and later that compilers use by themselves.
for binary in "$work"/out/qkv/libqkv.so* "$work"/out/qkv/_native.abi3.so; do
    objdump -d --no-show-raw-insn "$binary" >"$work/code"
    grep -q 'xmm' "$work/code" || die "$binary could not be read"
    if grep -E '%[yz]mm|	(v[a-z]+[sp][sd]|vp[a-z]+|pshufb|palignr|phadd[wd]|pmulld|pmaddubsw|ptest|pblendw|roundp[sd]|rounds[sd]|blendvp[sd]|popcnt|crc32[bwlq]|pextr[bdq]|pinsr[bdq]|haddp[sd]|lddqu|movbe|andn|bextr|shlx|shrx|sarx|mulx|pdep|pext|rorx|tzcnt|lzcnt) ' \
        "$work/code" | grep -v 'cpuid' | head -n 3 | grep .; then
        die "$binary needs more than x86-64 has"
    fi
done
PYTHONPATH=$work/out $python -c '
import qkv
print(qkv.open().run("The river runs.", "q@3=zero", "logits[-1]"), qkv.open().backend)'
