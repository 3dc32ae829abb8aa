# What was asked for and cannot be drawn.
awk 'BEGIN { for (i = 0; i < 90; i++) printf "%s%d", i ? "," : "", 5 + i }' >ids
draw() {
    qkv figure modify --layer 0 --head 0 --tokens "$(cat ids)" -o out.svg "$@"
}
draw
draw --values auto --labels index
draw --values always
draw --values always --panel-size 60
draw --labels tokens
draw --labels tokens --panel-size 200
draw --labels tokens --panel-size 1000
