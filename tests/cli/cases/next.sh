# One prompt under two edits; followed tokens and a difference of logits; another position; token ids.
qkv next -p 'The river runs to the' --variant 'z@3.h1=zero' --variant 'v@*=scale:0.5' --top 4
qkv next -p 'The river runs to the' --variant 'v@*=scale:0.5' --of ' river, sea' --of '\n' --diff ' river/ sea' --at -3
qkv next --tokens 5,6,7 --at 0 --top 2 --of ' it'
