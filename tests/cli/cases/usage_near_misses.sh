# A mistyped name is answered with the one that was probably meant, and a mistake where it was made.
p='The river runs past the old mill.'
wrong() { qkv "$@" && echo "accepted: $*"; }
for edit in 'Q@1=zero' 'query@1=zero' 'resid-pre@1=zero' 'q@1=Zero' 'q@1=scael:0.5' 'q@1=scale=0.5' \
    'q@1=zero+k@1=zero' 'a=zero+b=zero' 'q@1=zero +k@1=zero' 'q@1 = zero' 'q.h1@1=zero' '@1=zero'; do
    wrong run -p "$p" --variant "$edit"
done
for capture in 'patern@1' 'pattern@1:diag' 'pattern@1:First'; do
    wrong run -p "$p" --capture "$capture"
done
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
wrong bench --shape lama:1,2,2,8,8,8
wrong figure grid --row 'q@1=zero' -o a.png
wrong figure modify --scale Log -o a.png
wrong figure modfy
wrong help figure modfy
wrong help sweep merg
wrong rnu
wrong version
# Far from everything: no guess.
wrong xyzzy
wrong run -p "$p" --variant 'w@1=zero'
# Known, and not there.
wrong run -p "$p" --variant 'gate@1=zero'
wrong run -p "$p" --variant 'q_in@1.h0=mean:head'
# One thing is one thing.
qkv sweep -p "$p" --layers 0 --heads 0 --targets q --epsilon 0.5 --metrics sink --explain
qkv sweep -p "$p" -p 'A quiet street.' --layers 0 --heads 0-1 --targets q --epsilon 0.5 --metrics sink,entropy --explain
qkv run -p "$p" --variant 'pattern@1.h0[3,0]=set:0' --capture z@1 | head -1
true
