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
c qkv measure --metrics sink_
c qkv measure --metrics tv,sink_
c qkv run --capture resid
c qkv sweep --targets q,k_
c qkv patch --site q
c qkv lens --picture ''
c qkv weights ov --table ''
touch a.gguf b.txt; mkdir -p dir
c qkv info -m ''
c qkv convert ''
END
HF_HUB_CACHE=$PWD/none QKV_CACHE=$PWD/none bash try.bash | sed "s|$MODELS|MODELS|g"
# The pictures and tables that are offered are those that there are.
offered() { # COMMAND OPTION
    sed -n "/^    '$1')/,/^        ;;/p" qkv.bash | sed -n "s/^ *--$2) .*\(compgen -W\|_qkv_list\) '\([^']*\)'.*/\2/p" | tr ' ' '\n' | sort
}
there_are() { # OPTION COMMAND...
    option=$1
    shift
    qkv "$@" "--$option" nothing -o none.png 2>&1 | sed 's/.*; there \(are\|is\) //; s/, /\n/g'
}
for option in picture table; do
    {
        there_are $option lens -p 'The river' --answer ' sea' --heads
        there_are $option lens -p 'The river' --answer ' sea'
    } | sort -u >lens
    there_are $option compare --edit q@0=zero -p 'The river' | sort >compare
    for circuit in ov qk composition; do there_are $option weights $circuit --layers 0-1 --heads 0; done | sort -u >weights
    there_are $option roles -p 'The river' --length 8 --sequences 1 | sort >roles
    there_are $option patch --clean 'The river' --corrupt 'The road' --metric kl | sort >patch
    for command in lens compare weights roles patch; do
        offered $command $option | diff - $command | sed "s/^/$command $option /"
    done
done
# So are the sites that can be patched.
qkv patch --clean 'The river' --corrupt 'The road' --metric kl --site none 2>&1 | sed 's/.*these are: //; s/, /\n/g' | sort >patch
offered patch site | diff - patch
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
