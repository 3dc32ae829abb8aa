# A sweep under way is drawn as far as it goes; one without results is not.
"$MAKE_SWEEP" part.sqlite 2 2 2 q,k scale 1e-3,1 sink 11 || exit
qkv plot part.sqlite -o out.svg
grep -o '"cells":.*,"missing":[0-9]*' out.svg
qkv plot part.sqlite --layers 1 --heads 1 --epsilon 1 -o gap.svg
"$MAKE_SWEEP" none.sqlite 2 2 2 q,k scale 1e-3,1 sink 0 || exit
qkv plot none.sqlite -o none.svg
"$MAKE_SWEEP" first.sqlite 2 2 2 q,k scale 1e-3,1 sink 1 || exit
qkv plot first.sqlite -o none.svg
ls
