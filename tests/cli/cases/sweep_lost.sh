# A process that is killed while it works ends the sweep with one line, and the same command
# resumes it. A signal that asks all of them for an end is a stop, not a loss.
i=0
while [ $i -lt 40 ]; do
    echo "On day $i the boat left the harbour at noon and came back before the rain began."
    i=$((i + 1))
done >prompts
sweep="-f prompts --epsilon logspace:1e-6,1,7 --metrics sink,tv"
qkv sweep $sweep -t 1 -o whole.sqlite 2>/dev/null
qkv sweep export whole.sqlite -o whole.csv
# Starts it with three processes and halts the second one, without which it cannot finish.
start() { # RESULTS
    setsid qkv sweep $sweep -t 3 -o "$1" 2>stderr &
    leader=$!
    follower=
    tries=0
    until [ "$follower" ] || [ $tries = 3000 ]; do
        sleep 0.02
        read -r follower _ </proc/$leader/task/$leader/children
        tries=$((tries + 1))
    done 2>/dev/null
    kill -STOP "$follower"
    until [ -s "$1" ] || [ $tries = 3000 ]; do
        sleep 0.02
        tries=$((tries + 1))
    done
}
finish() { # RESULTS
    qkv sweep $sweep -t 4 -o "$1" 2>stderr || cat stderr
    qkv sweep export "$1" -o rows.csv && cmp whole.csv rows.csv
}
start lost.sqlite
kill -KILL "$follower"
wait $leader
echo "exit $?"
tail -n +2 stderr
finish lost.sqlite
start stopped.sqlite
kill -TERM -$leader
kill -CONT "$follower"
wait $leader 2>/dev/null
echo "exit $?"
tail -n +2 stderr | sed 's/with [0-9]* of/with N of/'
finish stopped.sqlite
ls
wc -l <rows.csv
