# A mistyped name is answered with the one that was probably meant, and a mistake where it was made.
p='The river runs past the old mill.'
wrong() { qkv "$@" && echo "accepted: $*"; }
for edit in 'Q@1=zero' 'q@1=scael:0.5'; do
    wrong run -p "$p" --variant "$edit"
done
wrong run -p "$p" --capture 'pattern@1:diag'
wrong run "$p"
wrong run -p "$p" --captures pattern
wrong run -p "$p" --eps 0.5
wrong measure --metrics entopy
wrong measure --metric entropy
wrong metrics Entropy
wrong info tinyllama
wrong sweep --targets Q -p "$p" --epsilon 0.5 -o x.sqlite
echo '{"prompt": ["A text."]}' >spec.json
wrong sweep spec.json -o x.sqlite
wrong recipe head-importanc
wrong pull tinylama
wrong figure grid --row 'q@1=zero' -o a.png
wrong figure modify --scale Log -o a.png
wrong figure modfy
wrong help figure modfy
wrong help sweep merg
wrong figure mode
wrong weights compsition
wrong sweep exprt
wrong recipe extrct
wrong help notaton
wrong completion bsh
wrong rnu
wrong heads -p "$p"
wrong version
# Far from everything: no guess.
wrong xyzzy
# One thing is one thing.
qkv sweep -p "$p" --layers 0 --heads 0 --targets q --epsilon 0.5 --metrics sink --explain
qkv sweep -p "$p" -p 'A quiet street.' --layers 0 --heads 0-1 --targets q --epsilon 0.5 --metrics sink,entropy --explain
qkv run -p "$p" --variant 'pattern@1.h0[3,0]=set:0' --capture z@1 | head -1
true
