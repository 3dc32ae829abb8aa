# A signal in the middle of the work leaves no NAME.XXXXXX behind, and the exit status tells of it.
i=0
while [ $i -lt 3000 ]; do
    echo "Prompt number $i is here only to keep the program busy for a while, and so are its words."
    i=$((i + 1))
done >prompts.txt

started() { # out.csv has its temporary file
    for file in out.csv.*; do [ -e "$file" ] && return 0; done
    return 1
}

try() {
    # timeout, because a shell has background jobs ignore SIGINT
    timeout --preserve-status -s "$1" 300 qkv measure -f prompts.txt --metrics all -o out.csv &
    job=$!
    until started || ! kill -0 $job 2>/dev/null; do sleep 0.02; done
    started || echo "it ended too soon"
    kill -ALRM $job # timeout takes it for its time being up, and sends the signal
    wait $job
    echo "$1: $?"
    ls
}

for signal in INT TERM HUP; do try $signal; done
