# Standard descriptors that are closed: no file or socket takes their place, what has nothing to say
# there works, and what has is an error.
sweep="qkv sweep -p Hello,world. --epsilon 0.5 --metrics tv"
$sweep -t 1 -o whole.sqlite 2>/dev/null && qkv sweep export whole.sqlite -o whole.csv
compare() { # WHICH
    echo "sweep without $1: exit $?"
    qkv sweep export s.sqlite -o s.csv && cmp whole.csv s.csv
    rm -f s.*
}
for t in 2 4; do
    sweep_t="$sweep -t $t -o s.sqlite"
    $sweep_t 2>stderr <&-
    compare 0
    $sweep_t 2>stderr >&-
    compare 1
    $sweep_t 2>&-
    compare 2
    $sweep_t <&- 2>&-
    compare "0 and 2"
    $sweep_t <&- >&- 2>&-
    compare any
done
# Outputs are what they are otherwise.
run="qkv run --tokens 5,6,7 --capture pattern@3 -o"
$run open.npy && $run closed.npy <&- >&- 2>&- && cmp open.npy closed.npy
figure="qkv figure mean -p Hello,world. -o"
$figure open.svg 2>/dev/null && $figure closed.svg <&- >&- 2>&-
echo "figure: exit $?"
ls ./*.svg
# Data that cannot be read or written.
qkv info >&-
echo "exit $?"
qkv --version >&-
echo "exit $?"
qkv run --tokens 5,6 --capture pattern@3 <&- >&-
echo "exit $?"
qkv tokens -f - <&-
echo "exit $?"
ln -s /dev/stdout link.json
qkv run --tokens 5,6 --capture pattern@3 -o link.json >&-
echo "exit $?"
