# A signal in the middle of the work leaves no NAME.XXXXXX behind, and the exit status tells of it.
i=0
while [ $i -lt 3000 ]; do
    echo "Prompt number $i is here only to keep the program busy for a while, and so are its words."
    i=$((i + 1))
done >prompts.txt

try() {
    # timeout, because a shell has background jobs ignore SIGINT
    timeout --preserve-status -s "$1" 300 qkv measure -f prompts.txt --metrics all -o out.csv &
    job=$!
    sleep 1
    kill -0 $job || echo "it ended too soon"
    kill -ALRM $job # timeout takes it for its time being up, and sends the signal
    wait $job
    echo "$1: $?"
    ls
}

for signal in INT TERM HUP; do try $signal; done
