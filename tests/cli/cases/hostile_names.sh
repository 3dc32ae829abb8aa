# Names that a file brings along neither command the terminal nor break a line, and are cut where
# they would fill the page.
control=$(printf 'a\033[31m\nb\302\2335m\342\200\256c')
long=$(printf '%0200d' 7)
for name in "$control" "$long"; do
    cp -r "$VECTORS/llama/hf" "$name"
    qkv info -m "$name" | grep '^name \|^file '
    qkv info -m "$name/nothing"
    qkv figure modify -m "$name" --tokens 5,6,7 --layer 0 --head 0 -o out.svg --title "$name"
    LC_ALL=C grep -ac "$(printf '\033')" out.svg
    qkv run -m "$name" --tokens 5,6 --capture 'pattern@0' -o "$name.txt"
    qkv run -m "$name" --tokens 5,6 --capture "$name"
done
qkv convert "$long" -o named.gguf
qkv figure modify -m named.gguf --tokens 5,6,7 --layer 0 --head 0 -o out.svg --report out.md
grep -o '0000*[^ ]* (named' out.md
exit 0
