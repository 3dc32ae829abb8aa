# A grid with a set: its recipe has the prompts, and it can be made again.
printf '%s\n' 'The river runs.' 'A boat goes down to the sea.' 'Snow falls on the hill.' >set.txt
qkv figure grid -p 'The river' --layer 3 --head 1 --set-prompts set.txt --col 'Plain=' \
    --col 'Mean=resid_pre@{layer}[1:]=mean:set' --col 'Drawn=resid_pre@{layer}[1:]=patch:resample,seed=3' -o out.svg
grep -ao '{[^{}]*"name":"mean:set"[^}]*}' out.svg | head -1
rm set.txt
qkv reproduce out.svg -o again.svg
cmp out.svg again.svg && echo same
sed 's/14\],"name":"mean:set"/7],"name":"mean:set"/' out.svg >changed.svg
qkv reproduce changed.svg -o third.svg || echo "exit $?"
ls
