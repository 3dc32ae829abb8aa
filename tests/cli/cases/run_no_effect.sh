# Edits that cannot have an effect, or another than they say.
try() {
    qkv run --tokens 5,6,7,8,9,10 "$@" >out
    echo "exit $?" >&2
    grep "^v1  " out >&2
}
try --variant 'scores@3.h0[0:1,5:6]=add:5' --capture pattern@3.h0
try --variant 'scores@3.h0[0:2,0:6]=add:5' --capture pattern@3.h0:first
try --variant 'q@3.h1=zero' --capture pattern@3.h0:first
try --variant 'q@3.h0=zero + q@3.h1=zero' --capture pattern@3.h0:first
try --variant 'q@3=scale:1e-50' --capture pattern@3:first
try --variant 'v@3=set:1e30' --capture pattern@4:first
qkv measure --tokens 5,6,7,8 --variant 'q@3.h1=zero' --layers 3 --heads 0 --metrics entropy >out
qkv figure modify --tokens 5,6,7 --layer 0 --head 0 --eps 0.5,1e-50 -o out.svg
echo "exit $?" >&2
for epsilon in 1e-50 1e-400; do
    qkv sweep --tokens 5,6,7 --epsilon "$epsilon" --metrics tv -t 1 -o out.sqlite
    echo "exit $?" >&2
done
ls
