# Every way to draw: each must leave a figure.
draw() {
    qkv figure "$@" --layer 0 --head 0 --tokens 5,6,7,8,9 || echo "failed: $*"
}
draw modify -o 01.svg --labels index
draw modify -o 02.svg --labels none --no-axis-labels
draw modify -o 03.svg --values always
draw modify -o 04.svg --values never
draw modify -o 05.svg --baseline
draw modify -o 06.svg --diff
draw modify -o 07.svg --diff --scale power --gamma 0.3
draw modify -o 08.svg --scale log
draw modify -o 09.svg --scale power
draw modify -o 10.svg --skip-keys 1
draw modify -o 11.svg --skip-keys 4 --scale log
draw modify -o 12.svg --range 0,0.5
draw modify -o 13.svg --diff --range -0.5,0.5
draw modify -o 14.svg --title 'A *title*'
draw modify -o 15.svg --title ''
draw modify -o 16.png --dpi 40
draw modify -o 17.svg --panel-size 60
draw modify -o 18.svg --edit-heads all
draw modify -o 19.svg --eps 0.25
draw modify -o 20.svg --eps 1,0.5,0.25,0.125,0
draw mean -o 21.svg --baseline
draw mean -o 22.svg --diff --edit-heads all
draw grid -o 23.svg --show scores --col 'Plain=' --col 'Half=q@{layer}.h{head}=scale:0.5'
draw grid -o 24.svg --row 'A=v@0=zero' --row 'B=' --col 'Plain=' --col 'K=k@{layer}.h{head}=zero' --baseline
qkv figure modify --tokens 5 -o 25.svg --layer 0 --head 0 || echo 'failed: one token'
ls
