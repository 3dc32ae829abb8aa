# A sweep, its export, and resuming a finished one.
sweep="qkv sweep -p 'The river runs to the sea.' --layers 0,2 --heads 1 --targets none,q,v"
eval "$sweep --epsilon 0.5,1e-3 --metrics sink,tv -o r.sqlite" 2>stderr || cat stderr
ls
qkv sweep export r.sqlite -o r.csv -o r.json
cut -d, -f1-7 r.csv
grep -c '"metric"' r.json
eval "$sweep --epsilon 0.5,1e-3 --metrics sink,tv -o r.sqlite" 2>stderr || cat stderr
grep already stderr
eval "$sweep --epsilon 0.5 --metrics sink,tv -o r.sqlite" 2>stderr
tail -n 1 stderr
