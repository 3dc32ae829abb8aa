#!/bin/sh
# Who may include whom. Prints every include that the architecture does not allow, and fails if there is one.
# docs/architecture.md draws the same picture; this is the one that is checked (test `includes`). Prints too where
# jansson is called in a way that base/json.h has a better one for.
set -u
cd "$(dirname "$0")/.." || exit 1

# FOLDER: the folders below src/ whose headers it may include besides its own; "qkv" are the public headers.
rules='
base:       qkv
format:     qkv base
tokenizer:  qkv base format
kernel:     qkv base
model:      qkv base format tokenizer kernel
run:        qkv base model kernel
chat:       qkv base format tokenizer model jinja
measure:    qkv base model run kernel
draw:       qkv base
store:      qkv base format run
sweep:      qkv base run measure store
page:       base
study:      qkv base page store run measure draw sweep model
server:     qkv base page study draw model run measure sweep store
hub:        qkv base format model
cli:        qkv base
'
# HEADER: the folders, or the one file, that may include a dependency's header.
owners='
ggml          format kernel model run
gguf.h        format
cairo         draw
pango         draw
fontconfig    draw
png.h         draw/png_writer.c
pcre2.h       tokenizer
utf8proc.h    tokenizer chat
sqlite3.h     store
curl          hub
jinja         chat
openssl       hub page/page_bundle.c
microhttpd    server
mpi.h         cli/mpi_transport.c
'

# Their results are easily forgotten, or they forget themselves to say that memory was short.
silent='(object_set|object_set_new|object_set_nocheck|object_set_new_nocheck|object_update|object_update_missing'
silent="(^|[^a-z_])json_$silent|array_append|array_append_new|array_set_new|copy|deep_copy|dumps|dumpf|loads|loadb)\\("
if git ls-files -z 'src/*.c' ':!src/base/json.c' | xargs -0 grep -nE "$silent" /dev/null; then
    echo 'base/json.h has other functions for this, which fail as a whole'
    exit 1
fi

{
    printf '%s\n' "$rules" | sed -n 's/^\([a-z]*\): */rule \1 /p'
    printf '%s\n' "$owners" | sed -n 's/^\([a-z]\)/owner \1/p'
    echo files
    git ls-files -z 'src/*.[ch]' 'src/*.cpp' 'include/qkv/*.h' | xargs -0 grep -n '^#include' /dev/null
} | awk '
    $1 == "rule" { for (i = 2; i <= NF; i++) allowed[$2, $i] = 1; next }
    $1 == "owner" { owner[++n] = $2; for (i = 3; i <= NF; i++) owns[$2, $i] = 1; next }
    $1 == "files" { next }
    {
        split($0, part, ":")
        file = part[1]
        header = $0
        sub(/^[^<"]*[<"]/, "", header)
        sub(/[>"].*$/, "", header)
        is_public = file ~ /^include\//
        folder = is_public ? "qkv" : file
        sub(/^src\//, "", folder)
        sub(/\/.*/, "", folder)
        own = file
        sub(/^src\//, "", own)
        for (i = 1; i <= n; i++) {
            if (index(header, owner[i]) == 1 && !owns[owner[i], folder] && !owns[owner[i], own]) {
                print file ":" part[2] ": " header " is not for " folder "/"
                bad = 1
            }
        }
        if (header !~ /\// || $2 ~ /^</) next
        target = header
        sub(/\/.*/, "", target)
        if (target != folder && !allowed[folder, target]) {
            print file ":" part[2] ": " folder "/ may not include " header
            bad = 1
        }
    }
    END { exit bad }'
