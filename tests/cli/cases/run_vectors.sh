# Vectors of files: a state that the model had is added, removed and set again.
qkv run --tokens 5,6,7 --capture resid_post@0 --capture q@0 -o states.safetensors
mkdir deep
cp states.safetensors deep/states.safetensors
qkv run --tokens 5,6,7 --capture resid_post@0 \
    --variant 'resid_post@0=set:@deep/states.safetensors#v0/resid_post.0' \
    --variant 'resid_post@0=add:@states.safetensors#v0/resid_post.0,by=-1' \
    --variant 'resid_post@0=remove:@states.safetensors#v0/resid_post.0' \
    --variant 'q@1.h0=add:@states.safetensors#v0/q.0' -o out.json --json |
    grep -E '"(edit|changed|note)"' | sed 's/hash [0-9a-f]*/hash .../'
grep -o '"edits_notes[^]]*]' out.json | sed 's/hash [0-9a-f]*/hash .../'
# What is wrong with them.
refused() {
    qkv run --tokens 5,6,7 --variant "$1"
}
refused 'resid_post@0=add:@states.safetensors#v0/q.0'
refused 'resid_post@0=add:@nowhere.safetensors#v'
refused 'pattern@0=add:@states.safetensors#v0/q.0'
head -c 3000 states.safetensors >cut.safetensors
refused 'resid_post@0=add:@cut.safetensors#v0/resid_post.0'
qkv run --tokens 5,6 --variant 'resid_post@0=set:@states.safetensors#v0/resid_post.0'
# Everywhere that edits are.
qkv next --tokens 5,6,7 --variant 'resid_post@0=remove:@states.safetensors#v0/resid_post.0' --top 1 >/dev/null
qkv generate --tokens 5,6,7 -n 2 --variant 'resid_post@0=add:@states.safetensors#v0/resid_post.0'
qkv generate --tokens 5,6,7 -n 2 --edit-tokens prompt \
    --variant 'resid_post@0=add:@states.safetensors#v0/resid_post.0' >/dev/null
qkv measure --tokens 5,6,7 --metrics sink \
    --variant 'resid_post@0=add:@states.safetensors#v0/resid_post.0' >/dev/null
