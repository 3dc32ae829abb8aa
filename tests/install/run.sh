#!/bin/sh
# Installs a build below a temporary prefix, moves it elsewhere, and compiles an example against it in three ways: with
# find_package, with pkg-config, and with pkg-config --static. Each must compile without a flag of ours, and run.
#
#     run.sh BUILD SOURCE        CC names the compiler; SANITIZED=1: link the sanitizers' runtime too
set -eu
build=$1 source=$2
example=$source/examples/first_column.c
model=$source/models/default.gguf
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=
[ "${SANITIZED:-0}" != 1 ] || flags=-fsanitize=address,undefined
LSAN_OPTIONS=suppressions=$source/tests/lsan.supp:print_suppressions=0
export LSAN_OPTIONS

die() { echo "install: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$work/first" >"$work/log" || { cat "$work/log"; exit 1; }
# Both lines that a prefix of one's own needs are printed, and are right.
for line in 'PKG_CONFIG_PATH=' '-Wl,-rpath,'; do
    place=$(sed -n "s|.*$line\([^ ]*\).*|\1|p" "$work/log")
    [ -d "${place:-none}" ] || die "$line is not said, or is not there: '$place'"
done
mv "$work/first" "$work/moved"
library=$(dirname "$(find "$work/moved" -name libqkv.so)")
PKG_CONFIG_PATH=$library/pkgconfig
export PKG_CONFIG_PATH

# What was installed must not speak of the machine it was built on.
found=$(grep -lrE "$source|$build|march=|Wextra" "$library/pkgconfig" "$library/cmake" "$work/moved/include" || true)
[ -z "$found" ] || die "paths or flags of the build are in $found"

# A program has names of its own: every one of the archive's begins with qkv_ (those of compilers with _, DW.ref. or .gomp).
# Of C++, which has longer ones, each speaks of something of ours or of the standard library.
nm "$library/libqkv.a" 2>/dev/null | awk '$2 ~ /^[ABCDRSTVW]$/ { print $3 }' >"$work/names"
found=$(grep -vE '^((qkv)?_|DW\.ref\.|\.gomp)' "$work/names" || true)
[ -z "$found" ] || die "names in libqkv.a that may clash: $found"
found=$(grep '^_Z' "$work/names" | c++filt | grep -vE 'qkv_|std::|__gnu_cxx::|^typeinfo (name )?for (bool|void|char|int)' || true)
[ -z "$found" ] || die "names in libqkv.a that may clash: $found"

check() { # NAME PROGRAM
    LD_LIBRARY_PATH=$library "$2" "$model" >"$work/$1.out" || die "$1: the example does not run"
    grep -q 'unmodified' "$work/$1.out" || die "$1: the example printed something else"
}

cmake -S "$source/tests/install/outside" -B "$work/outside" -DEXAMPLE="$example" -DCMAKE_C_FLAGS="$flags" \
    -DCMAKE_C_COMPILER="${CC:-cc}" -DCMAKE_PREFIX_PATH="$work/moved" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cmake --build "$work/outside" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
check find_package "$work/outside/example"
! grep -qE 'march=|-W[a-z]|/src ' "$work/outside/compile_commands.json" || die "find_package: flags of ours leak"

# What the library was built with is its own affair: no other package is asked for, and none's headers are shown.
given=$(PKG_CONFIG_LIBDIR=$library/pkgconfig pkg-config --cflags --libs qkv) || die "pkg-config wants other packages"
case $(pkg-config --cflags qkv) in
*" -"*) die "pkg-config: include paths leak: $(pkg-config --cflags qkv)" ;;
esac
[ "$given" = "$(pkg-config --cflags --libs qkv)" ] || die "pkg-config: flags of other packages leak"

# The lists are meant to be split into words.
# shellcheck disable=SC2046,SC2086
"${CC:-cc}" $flags "$example" $(pkg-config --cflags --libs qkv) -o "$work/shared"
check pkg-config "$work/shared"
# shellcheck disable=SC2046,SC2086
"${CC:-cc}" $flags "$example" $(pkg-config --cflags qkv) "$library/libqkv.a" \
    $(pkg-config --static --libs qkv | sed 's/ -lqkv / /') -o "$work/static"
check static "$work/static"

# The program finds the model that was installed with it.
env -u QKV_MODEL "$work/moved/bin/qkv" info >"$work/info.out"
grep -q "$work/moved" "$work/info.out" || die "the program does not use the installed model"
