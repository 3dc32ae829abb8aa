"$MAKE_SWEEP" r.sqlite 2 2 2 q scale 1e-3,1 sink || exit
"$MAKE_SWEEP" wide.sqlite 5 6 1 q scale 1e-3,1 sink || exit
echo 'layer,head' >table.csv
plot() {
    qkv plot "$@"
    echo $?
}
plot -o out.svg
plot r.sqlite
plot r.sqlite -o out.gif
plot r.sqlite -o no/such/place.svg
plot r.sqlite -o out.svg --dpi 300
plot r.sqlite -o out.svg --top 5
plot r.sqlite -o out.svg --kind ranking --epsilon 1 --scale log
plot r.sqlite -o out.svg --kind ranking --epsilon 1 --by head
plot r.sqlite -o out.svg --kind heatmap --epsilon 1 --band sd
plot r.sqlite -o out.svg --change --scale log
plot r.sqlite -o out.svg --kind heatmap --epsilon 1 --change --range 0,1
plot r.sqlite -o out.svg --range 1,0
plot r.sqlite -o out.svg --scale log --range 0,1
plot wide.sqlite -o out.svg --by head
plot none.sqlite -o out.svg
plot table.csv -o out.svg
plot . -o out.svg
ls
