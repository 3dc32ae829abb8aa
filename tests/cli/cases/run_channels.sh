# Channels of edits and captures: what they select, what files say, and what is wrong.
run() {
    qkv run --tokens 5,6,7 --variant 'resid_post@1[0]{7,-1}=set:0' --variant 'q@3.h2{0:16}=zero' --capture 'q@3.h2{14:18}' \
        --capture 'resid_post@1{7}' --capture 'resid_post@1{9}' --capture 'logits[-1]{0:3}' "$@"
}
run | cut -c1-44
run -o out.safetensors
qkv show out.safetensors | sed -n '/^channels/p;/^captures/p;/^tensor/,$p'
qkv show out.safetensors --tensor v1/resid_post.1 | cut -c1-33 | sed 's/-*[0-9]*\.[0-9e-]*/x/g'
qkv show out.safetensors --tensor v2/q.3 --json | sed -n '/"channels"/,/]/p'
# One channel cannot show in another.
qkv run --tokens 5,6,7 --variant 'resid_post@1{7}=zero' --capture 'resid_post@1{8}' | head -1
for edit in 'q@0{32}=zero' 'q@0{}=zero' 'pattern@0{1}=zero' 'q@0{1}[2]=zero' 'q@0{3}=zero + q@0{2:4}=zero'; do
    qkv run --tokens 5,6 --variant "$edit" --capture pattern@0
    echo "exit $?" >&2
done
qkv run --tokens 5,6 --capture 'scores@0{1}'
echo "exit $?" >&2
