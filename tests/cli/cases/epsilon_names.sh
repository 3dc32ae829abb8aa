# --eps and --epsilon are one option, with the same lists everywhere.
try() {
    "$@" || echo "exit $?" >&2
}
for name in --eps --epsilon; do
    qkv figure modify -p 'A quiet street.' --layer 0 --head 0 $name 0,linspace:0.5,1,3 -o f.svg --data f.safetensors
    grep -a -o '"q@0.h0=scale:[0-9.]*"' f.safetensors
    qkv sweep -q -p 'A quiet street.' --layers 0 --heads 0 --targets q $name 0,linspace:0.5,1,3 --metrics tv -o r$name.sqlite
    qkv sweep export r$name.sqlite -o - | cut -d , -f 6
    qkv plot r$name.sqlite $name linspace:0.5,1,3 -o lines.svg
    qkv plot r$name.sqlite $name=0 --kind heatmap -o map.svg
done
try qkv figure modify --eps 1 --epsilon 2 -o f.svg
try qkv sweep -p A --epsilon 1 --eps=2 --explain
try qkv figure modify --eps logspace:0,1,3 -o f.svg
try qkv plot r--eps.sqlite --eps linspace:0,1 -o f.svg
try qkv plot r--eps.sqlite --eps linspace:0,1,2 -o f.svg && ls f.svg
try qkv sweep -p A --epsilon linspace:0,1,0 --explain
