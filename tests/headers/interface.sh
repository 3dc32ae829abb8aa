#!/bin/sh
# What the public headers promise as a whole: interface.sh SOURCE_DIRECTORY. Prints what is not so, and fails.
set -eu
cd "$1/include/qkv"
bad=$(mktemp)
trap 'rm -f "$bad"' EXIT

# Declarations, each on one line: "RETURN NAME(...)".
declarations() {
    grep -hv '^#' ./*.h | tr '\n' ' ' | grep -o 'QKV_API [a-z][^;]*;' | sed 's/  */ /g'
}

{
    # Every function is called with bad arguments by a test.
    declarations | sed 's/(.*//; s/.*[ *]//' | sort | while read -r name; do
        grep -q "\b$name(" "$1"/tests/unit/test_arguments*.c || echo "no tests/unit/test_arguments*.c calls $name"
    done

    # No struct is returned by value: an enum is the only qkv_ type without a star.
    declarations | sed -n 's/^QKV_API \(const \)\{0,1\}\(qkv_[a-z_]*\) qkv_.*/\2/p' | sort -u | while read -r type; do
        grep -q "typedef enum $type\b" ./*.h || echo "a function returns $type by value"
    done

    # A struct starts with its size, or says why it has none.
    awk '
        /^\/\*/ { comment = "" }
        { comment = comment " " $0 }
        /^typedef struct qkv_[a-z_]+ \{$/ {
            name = $3
            text = comment
            getline
            if ($0 !~ /^    size_t size;/ && text !~ /never +(\* )?grow|only +(\* )?ever +(\* )?added/)
                print FILENAME ": " name " has no size and does not say that it will never grow"
        }
        /^$/ { comment = "" }
    ' ./*.h

    # Headers that qkv.h includes for QKV_UNSTABLE alone are those that say so in their first lines.
    unstable=$(sed -n '/^#ifdef QKV_UNSTABLE/,/^#endif/s/^#include "qkv\/\(.*\)"/\1/p' qkv.h)
    for header in *.h; do
        marked=no
        head -2 "$header" | grep -q 'Unstable: may change in every version' && marked=yes
        included=$(printf '%s\n' "$unstable" | grep -c "^$header\$" || true)
        [ "$marked:$included" = yes:1 ] || [ "$marked:$included" = no:0 ] ||
            echo "$header: marked unstable $marked, but qkv.h includes it otherwise"
        [ "$header" = qkv.h ] || grep -q "^#include \"qkv/$header\"" qkv.h || echo "qkv.h does not include $header"
    done
} >"$bad"

cat "$bad"
[ ! -s "$bad" ]
