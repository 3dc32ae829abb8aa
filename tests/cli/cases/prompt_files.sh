# -f is one prompt per line in every command, --file a whole text, '-' standard input.
try() {
    "$@" >out 2>err || echo "exit $?"
    cat err
}
printf 'A quiet street.\r\n\nThe river runs.\n' >two
printf 'The river runs.\n' >one
try qkv run -f two --capture pattern@0
try qkv run -f one -f one --capture pattern@0
try qkv figure modify -f two -o a.png
try qkv figure heads --prompts two -o a.png
try qkv figure grid --prompts one -o a.png
try qkv figure grid --layer 0 --head 0 --prompts two -o a.png
qkv run -f one --capture pattern@0 | tail -n 1
qkv run --prompts - --capture pattern@0 <one | tail -n 1
qkv run --file two --capture pattern@0 | tail -n 1
qkv run --file - --capture pattern@0 <two | tail -n 1
qkv tokens -f two --no-special
qkv tokens -f one --json | sed -n 1,4p
qkv tokens --file two | wc -l
qkv tokens --tokens 5,6
# Commands that take several count the same prompts.
qkv measure -f two --metrics loss -o - | cut -d, -f1
qkv measure --file two --metrics loss -o - | cut -d, -f1
qkv sweep -f two --epsilon 1 --metrics tv --explain --json -q | grep prompts
qkv sweep --file two --epsilon 1 --metrics tv --explain --json -q | grep prompts
qkv figure mean -f two -q --layer 0 --head 0 --data mean.npz
python3 -c "import zipfile; print(*zipfile.ZipFile('mean.npz').namelist())"
printf 'a\0b\n' >nul
try qkv measure -f nul
