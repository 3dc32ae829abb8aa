# Every kind of chart and option: each must leave a file, and say what it shows.
"$MAKE_SWEEP" r.sqlite 3 4 3 q,v scale,zero 1e-3,1e-2,1 sink,kl || exit
draw() {
    qkv plot r.sqlite "$@" || echo "failed: $*"
}
draw --metric sink --op scale -o 01.svg
draw --metric sink --op scale -o 02.png --dpi 40
draw --metric sink --op scale -o 03.pdf
draw --metric sink --op zero -o 04.svg
draw --metric sink --op scale --epsilon 1e-2 -o 05.svg
draw --metric sink --op scale --epsilon 0.001,1 --band sd -o 06.svg
draw --metric sink --op scale --target q --by layer -o 07.svg
draw --metric sink --op scale --target q --by head --layers 0,2 --heads 1-2 -o 08.svg
draw --metric sink --op scale --axis linear --band none -o 09.svg
draw --metric kl --op scale --scale log -o 10.svg
draw --metric kl --op scale --epsilon 1 --scale log -o 11.svg
draw --metric sink --op scale --change -o 12.svg
draw --metric sink --op scale --epsilon 1e-3 --change --range -1,1 -o 13.svg
draw --metric sink --op scale --epsilon 1e-3 --kind ranking -o 14.svg
draw --metric sink --op scale --epsilon 1e-3 --kind ranking --change --top 5 --title '' -o 15.svg
draw --metric sink --op scale --epsilon 1e-3 --kind ranking --order smallest --band sd -o 16.svg
draw --metric sink --target none -o 17.svg
draw --metric sink --target none --kind ranking --order magnitude --range 0,2 -o 18.svg
draw --metric sink --op scale --title 'A *title*' --range 0,1 -o 19.svg -o 19.pdf
draw --kind lines --metric sink -o 20.svg
ls
# ε = 0 beside a logarithmic list stands apart, and the small print says so.
qkv sweep -q -p 'The river runs to the sea.' --layers 0 --heads 0 --targets q --epsilon 0,logspace:1e-3,1,4 --metrics tv -o zero.sqlite
qkv plot zero.sqlite --text text -o zero.svg && grep -o 'stands apart: the axis is broken' zero.svg | sort -u
qkv plot zero.sqlite --axis linear --text text -o linear.svg && grep -c 'stands apart' linear.svg
# Bars and axes say what they measure, and rankings how far prompts differ.
qkv plot r.sqlite --metric kl --op scale --epsilon 1 --text text -o kl.svg && grep -o '>[^<]*KL (nats)<' kl.svg
qkv plot r.sqlite --metric sink --op scale --epsilon 1 --kind ranking --text text -o ranking.svg &&
    grep -o 'whisker: [a-z ]*' ranking.svg
true
