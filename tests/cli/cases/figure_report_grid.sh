# A grid of one's own has the numbers, but no statements except what is true of every causal pattern.
qkv figure grid --layer 3 --head 1 --tokens 5,6,7,8 --row 'a|b=' --row 'No first key=pattern@3.h1[:,0]=set:0' \
    --col 'Plain=' --col 'Flat=q@3.h1=zero' --report out.md --report out.html
grep -n '^|' out.md | cut -d'|' -f2,3
