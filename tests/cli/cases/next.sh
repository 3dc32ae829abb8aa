# One prompt under two edits; followed tokens and a difference of logits; another position; token ids.
qkv next -p 'The river runs to the' --variant 'z@3.h1=zero' --variant 'v@*=scale:0.5' --top 4
qkv next -p 'The river runs to the' --variant 'v@*=scale:0.5' --of ' river, sea' --of '\n' --diff ' river/ sea' --at -3
qkv next --tokens 5,6,7 --at 0 --top 2 --of ' it'
# Very large logits: a constant added to all of them changes no probability.
qkv next -p hi --variant 'logits=set:-3e38' --variant 'logits=set:0' --top 1 -o - | tail -n 2 | cut -d, -f13 | uniq | wc -l
