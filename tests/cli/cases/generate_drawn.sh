# A seed gives the same text, another one another; draws can be cut down to the greedy text; a stop text ends it.
qkv generate -p 'The river' -n 12 --temperature 1.5 --seed 7 >first
qkv generate -p 'The river' -n 12 --temperature 1.5 --seed 7 -t 1 | cmp - first && echo same
qkv generate -p 'The river' -n 12 --temperature 1.5 --seed 8 | cmp -s - first || echo other
qkv generate -p 'The river' -n 12 >greedy
for cut in '--top-k 1' '--top-p 0.001' '--min-p 1' '--temperature 0'; do
    qkv generate -p 'The river' -n 12 $cut | cmp -s - greedy && echo "greedy with $cut"
done
text=$(cat greedy)
word=$(echo "$text" | awk '{ print $3 }')
qkv generate -p 'The river' -n 12 --stop "$word" >stopped
case $text in "$(cat stopped)"*) [ "$(wc -c <stopped)" -lt "$(wc -c <greedy)" ] && echo stopped ;; esac
qkv generate -p 'The river' -n 12 --recompute | cmp - greedy && echo recomputed
qkv generate -p 'The river' -n 3 --recompute --variant 'v@0=mean:token' | grep -c mean:token
# Escapes in stop texts, and captures of the texts of several variants.
letter=$(printf '%s' "$word" | cut -c1)
qkv generate -p 'The river' -n 12 --stop "$(printf '\\x%02x' "'$letter")${word#?}" | cmp - stopped && echo 'stopped by an escape'
qkv generate -p 'The river' -n 4 --capture pattern@1.h0 --variant 'v@0=zero' --variant 'q@1=zero' | grep '^text of\|^v1  '
