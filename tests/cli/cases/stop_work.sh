# Ctrl-C in the middle of work that would take a minute or more: it ends soon, its exit status tells of the signal, and
# nothing half-written is left.
shape=4,8,8,512,1024,300,16384
wide=4,8,8,1024,3072,300
for s in $shape $wide; do
    qkv-bench --shape $s --type f16 --keep models -T 8 -t 1 --repeats 1 --only load >/dev/null 2>&1
done
model=models/$shape-f16.gguf
some=$(seq -s, 1 299)
some=$some,$some,$some,$some,$some,$some
many=$some,$some,$some,$some,$some,$some,$some,$some

children() {
    cat "/proc/$1/task/$1/children" 2>/dev/null
}

ticks() { # of processor time that a process and its children have had
    sum=0
    for p in $1 $(children "$1"); do
        n=$(sed 's/.*) //' "/proc/$p/stat" | cut -d ' ' -f 12)
        sum=$((sum + n))
    done
    echo $sum
}

# Sends the signal once the program has computed for a while.
try() { # SIGNAL ARGUMENT...
    signal=$1
    shift
    # timeout, because a shell has background jobs ignore SIGINT
    timeout -s "$signal" 900 qkv "$@" 2>stderr &
    job=$!
    pid=
    until [ "$pid" ] || ! kill -0 $job 2>/dev/null; do
        sleep 0.02
        pid=$(children $job)
    done
    pid=${pid%% *}
    until [ "$(ticks "$pid")" -ge 150 ] || ! kill -0 $job; do sleep 0.05; done 2>/dev/null
    followers=$(children "$pid")
    kill -0 "$pid" || echo "it ended too soon"
    asked=$(date +%s)
    kill -"$signal" "$pid"
    wait $job 2>/dev/null
    echo "$1: $?"
    took=$(($(date +%s) - asked))
    [ $took -le 20 ] || echo "it went on for $took s"
    for follower in $followers; do kill -0 "$follower" 2>/dev/null && echo "$follower is left"; done
    # How far it was depends on the machine.
    sed -e 's/with [0-9]* of/with N of/' -e '/^qkv [a-z ]*: [0-9]* %/d' stderr
    rm stderr
    ls
}

try INT run -m $model --tokens "$many" -t 2 --capture resid_post@3 -o out.safetensors
try TERM measure -m $model --tokens "$many" -o out.csv
prompts=
for i in 1 2 3 4 5 6 7 8; do
    for j in 1 2 3 4 5 6 7 8; do prompts="$prompts --tokens $i,$j,$some"; done
done
# shellcheck disable=SC2086 # many arguments
try INT figure mean -m $model $prompts --layer 3 --head 0 --report out.md -o out.png
try INT convert models/$wide-f16.gguf --type iq3_s -o out.gguf
try INT sweep -m $model --tokens "$many" --targets q --epsilon 0.5 --at output -t 2 -o out.sqlite
rm out.sqlite
# A sweep whose leader only waits for the others to finish.
try TERM sweep -m $model --tokens "1,$many" --tokens "2,$many" --targets none --metrics loss -t 2 -o out.sqlite
