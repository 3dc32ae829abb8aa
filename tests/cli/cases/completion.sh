# The shells' own words for what is completed. zsh and fish are tried where they are installed.
qkv completion bash >qkv.bash
cat >try.bash <<'END'
. ./qkv.bash
compopt() { :; }
c() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _qkv
    echo "$* -> ${COMPREPLY[*]}"
}
c qkv me
c qkv figure ''
c qkv figure modify --sc
c qkv figure modify --scale ''
c qkv figure modify --scale = l
c qkv figure grid --show ''
c qkv run --cap
c qkv run -p ''
c qkv run -o ou
c qkv run --output try
c qkv show qkv.b
c qkv sweep e
c qkv sweep export qkv
c qkv recipe head
c qkv pull ''
c qkv completion ''
c qkv help fi
END
bash try.bash
# Every option of every command is there.
qkv help --names | while read -r name; do
    # shellcheck disable=SC2086 # two words
    qkv $name --help | grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -e '--[a-z-]+' | sort -u >options
    sed -n "/^    '$name')/,/^        ;;/p" qkv.bash | grep -oE -e '--[a-z-]+' | sort -u >known
    comm -23 options known | sed "s/^/$name lacks /"
done
if command -v zsh >/dev/null; then
    qkv completion zsh >_qkv
    zsh -n _qkv || echo 'zsh does not read it'
fi
if command -v fish >/dev/null; then
    qkv completion fish >qkv.fish
    HOME=$PWD fish -c 'source qkv.fish; complete -C "qkv figure modify --scale l"' | grep -q '^log' || echo 'fish does not complete'
fi
qkv completion tcsh
