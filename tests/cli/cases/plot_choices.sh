# What the file leaves open must be named; the choices are listed.
"$MAKE_SWEEP" r.sqlite 3 4 2 q,v scale,noise,zero 0,1e-3,0.316227766016838,1 sink,kl || exit
plot() {
    qkv plot r.sqlite -o out.svg "$@"
    echo $?
}
plot
plot --metric entropy
plot --metric sink
plot --metric sink --kind lines
plot --metric sink --op mean
plot --metric sink --target q,w --op scale
plot --metric sink --op scale --kind heatmap
plot --metric sink --op scale --kind ranking --epsilon 0.5
plot --metric sink --op scale --epsilon 0.316228
plot --metric sink --op scale
plot --metric sink --op scale --axis linear
plot --metric sink --op scale --epsilon 1e-3,1 --by layer
plot --metric sink --op scale --epsilon 1e-3,1 --by head --target q --layers 3
plot --metric sink --op scale --epsilon 1e-3,1 --by head --target q --heads 2-1
plot --metric sink --op scale --epsilon many
plot --metric sink --op zero --epsilon 1
plot --metric sink --op zero --kind lines
plot --metric kl --op scale --epsilon 1 --change
