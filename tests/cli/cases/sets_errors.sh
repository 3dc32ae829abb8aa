# What cannot be taken from a set or another prompt: one line each.
printf '%s\n' 'The river runs.' 'A boat goes down to the sea.' >set.txt
printf '\n' >none.txt
text='The river runs past the old mill and on to the sea.'
run() { qkv run -p "$text" --capture 'logits[-1]' "$@" || echo "exit $?"; }
run --variant 'z@1=mean:set'
run --variant 'z@1=mean:set' --set-prompts none.txt
run --variant 'z@1=mean:set' --set-prompts missing.txt
run --variant 'z@1=mean:head' --set-prompts set.txt
run --variant 'z@1=mean:sets' --set-prompts set.txt
run --source resample=a --variant 'z@1=patch:resample'
qkv generate -p 'The river' --set-prompts set.txt --variant 'z@1=patch:resample' -n 2 || echo "exit $?"
qkv figure grid -p 'The river' --set-prompts set.txt --col 'A=z@1=zero' -o a.png || echo "exit $?"
ls
