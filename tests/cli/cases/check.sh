# Can a model's numbers be trusted? A sound model, with a prompt and without; an encoder; one that cannot; and what
# cannot be.
lines() { qkv check "$@" --format csv -o - | cut -d , -f 1,2; }
lines
lines -p 'The river runs to the sea.' -t 1
lines -m "$VECTORS/bert/model.gguf" --length 6
lines -m "$VECTORS/mixtral/model.gguf"
# Two biases of one layer that undo each other, at 10^7: what stands between is lost in F32.
cp "$VECTORS/gpt2/model.gguf" bad.gguf
printf '\200\226\030\113' | dd of=bad.gguf bs=1 seek=146816 conv=notrunc status=none
printf '\200\226\030\313' | dd of=bad.gguf bs=1 seek=194624 conv=notrunc status=none
qkv check -m bad.gguf -o bad.csv >out
echo "exit $?" >&2
cut -d , -f 1,2 bad.csv
qkv check --length 1 || echo "exit $?" >&2
qkv check -p One -p Two || echo "exit $?" >&2
qkv check -o check.png || echo "exit $?" >&2
rm out && ls
