# Two sweeps started together on a new file, of the same or of different specifications: one of them has it, the other says
# so or comes later, and nothing is lost.
sweep() { qkv sweep -p 'one two three' --metrics tv -t 1 "$@"; }
sweep --epsilon 0.5 -o whole.sqlite 2>/dev/null
qkv sweep export whole.sqlite -o whole.csv
try() { # the second one's epsilon
    sweep --epsilon 0.5 -o r.sqlite 2>first &
    one=$!
    sweep --epsilon "$1" -o r.sqlite 2>second &
    two=$!
    wait $one
    first=$?
    wait $two
    second=$?
    [ $first = 0 ] || [ $second = 0 ] || cat first second
    [ $first = 0 ] || tail -n 1 first >>refused
    [ $second = 0 ] || tail -n 1 second >>refused
    # Who has won has all of it, whatever the other did.
    sweep --epsilon 0.5 -o r.sqlite 2>again || sweep --epsilon "$1" -o r.sqlite 2>>again || cat again
    qkv sweep export r.sqlite -o r.csv
    cmp -s whole.csv r.csv || [ "$(cut -d, -f 6 r.csv | sort -u | tr '\n' ' ')" = "$1 epsilon " ] || cat r.csv
    ls r.*
    rm r.*
}
touch refused
for epsilon in 0.5 0.5 0.5 0.25 0.25 0.25; do try $epsilon; done
grep -v -e 'r.sqlite is being written by another process; wait for it, or give another name$' \
    -e 'r.sqlite holds the results of another sweep; give another name, or remove it$' refused
true
