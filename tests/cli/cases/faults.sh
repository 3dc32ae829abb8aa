# Faults that no function returns end the program with one line: a model that is cut off while it is mapped, and a limit
# that leaves no room for the libraries.
cp "$MODELS/default.gguf" m.gguf
for i in $(seq 40); do echo "The river number $i runs to the sea."; done >prompts.txt
timeout 120 qkv sweep -m m.gguf -f prompts.txt --epsilon 0.5,0.4,0.3,0.2,0.1 -t 1 -o r.sqlite 2>stderr &
for i in $(seq 6000); do [ -s r.sqlite ] && break; sleep 0.01; done
: >m.gguf
wait $!
echo "status $?"
tail -n 1 stderr | tr '\r' '\n' | tail -n 1

if ldd "$QKV" | grep -q asan; then # reserves terabytes of address space
    echo "qkv: out of memory: as expected"
    echo "status 1"
else
    (
        ulimit -v 130000
        timeout 60 qkv info 2>&1 | sed 's/memory: .*/memory: as expected/'
    )
    (
        ulimit -v 130000
        timeout 60 qkv info >stdout 2>stderr
        echo "status $?"
    )
fi
