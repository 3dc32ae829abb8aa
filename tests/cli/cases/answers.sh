# Answers of several tokens, and texts that are tokens only with a space before them, which is said.
next() { qkv next -t 1 -p 'The river runs to the' "$@"; }
next --answer ' wide blue sea' --answer sea --of sea --variant 'z@2[-1]=zero'
next --answer ' wide blue sea' --variant 'v@1=scale:0.5' -o - | sed 's/\(\.[0-9]\{4\}\)[0-9]*/\1/g'
next --answer ' wide blue sea' --table answers -o - | sed 's/\(\.[0-9]\{4\}\)[0-9]*/\1/g'
# A space that one of two answers needs is put before both.
next --diff sea/or | tail -n 1
qkv lens -t 1 -p 'The river runs to the' --answer or/sea --top 1 | tail -n 1
# Several tokens that do not begin with a space are as they are written, which is said.
next --answer 'wide blue sea' | tail -n 1
qkv next -t 1 -p 'The river runs to the ' --answer 'wide blue sea' | tail -n 1
qkv measure -t 1 -p 'The river runs to the' --answer 'wide blue sea' | tail -n 1
qkv lens -t 1 -p 'The river runs to the' --answer 'wide blue sea' --top 1 | tail -n 1
# The metric of the whole text is the same, and so is patching.
qkv measure -t 1 -p 'The river runs to the' --answer ' wide blue sea' --variant 'z@2[-1]=zero' --metrics loss
measure() { qkv measure -t 1 -p 'The river runs to the' --answer ' wide blue sea' --metrics "$1" | grep -o 'answer:[0-9]*'; }
for metrics in answer answer:3 all answer:2 loss; do echo "$metrics:" $(measure "$metrics"); done
qkv measure -t 1 -p 'The river runs to the wide blue sea' --metrics answer:3,loss --variant 'z@2[6]=zero'
qkv measure -t 1 -p 'The river runs to the' --answer sea --source 'a=The road leads to the' --variant 'v@3=patch:a'
qkv lens -t 1 -p 'The river runs to the' --answer ' wide blue sea' --top 1 -o lens.csv:answer
head -n 1 lens.csv
patch() {
    qkv patch -t 1 --clean 'The river runs past the city, and people swim in the' \
        --corrupt 'The church runs past the city, and people swim in the' "$@"
}
patch --metric 'logprob_diff: river bank/ church yard' --metric 'prob:river' --top 2
patch --metric 'logprob_diff:river bank/ church yard' --top 1 | tail -n 1
try() { "$@" >out; echo "exit $?, $(wc -c <out) bytes" >&2; }
try next --answer ''
try next --answer ' sea' --all
try next --answer ' sea' --at 0
try next --diff ' river bank/ sea'
try qkv measure -p 'The river' --answer ' sea' --answer ' land'
try qkv measure -p 'The river' --answer ' sea' --generate 2
try patch --metric 'logit_diff: river bank/ church'
try next --diff sea/ing
try next --diff sea/
try qkv lens -p 'The river runs to the' --answer sea/ing
try patch --metric 'logprob:and/or'
