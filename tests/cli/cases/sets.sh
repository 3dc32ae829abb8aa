# Means over a set of prompts, and prompts drawn from it.
printf '%s\n' 'The river runs past the old mill.' 'A boat goes down to the sea in spring.' \
    'Snow falls on the hill.' 'The baker opens the shop before the sun is up.' >set.txt
text='The river runs past the old mill.'
qkv run -t 1 -p "$text" --set-prompts set.txt --capture 'logits[-1]' --variant 'z@3.h1=mean:set' \
    --variant 'v@2.g0[:4]=mean:set,per=position + k@2=mean:set' --variant 'resid_pre@4[2:]=patch:resample' \
    --variant 'resid_pre@4[2:]=patch:resample,seed=1' -o out.safetensors
# What was taken is in the file.
tr ',' '\n' <out.safetensors | grep -a -o 'source.set:[0-9]' | sort
tr '}' '\n' <out.safetensors | grep -a -o 'drew prompt [0-9] of the set.s 0 to 3' | sort
# The same in every command with edits.
qkv next -q -t 1 -p "$text" --set-prompts set.txt --variant 'z@3=mean:set' --top 2 -o next.json
qkv reproduce next.json --check
qkv measure -q -t 1 -p "$text" --set-prompts set.txt --variant 'z@3=mean:set' --metrics kl
qkv generate -q -t 1 -p "$text" --set-prompts set.txt --variant 'z@3=mean:set' \
    --variant 'z@3[:4]=patch:resample,seed=1' -n 4
qkv run -t 1 -p "$text" --set-prompts set.txt --variant 'z@3=mean:set' --capture 'logits[-1]' --explain
# A token of a prompt of another length.
qkv run -t 1 -p "$text" --source 'far=Today a boat goes down to the old mill by the sea.' --capture 'logits[-1]' \
    --variant 'resid_pre@3[-2<--4]=patch:far' --variant 'z@*[1:4,0<-3:6,0]=patch:far'
