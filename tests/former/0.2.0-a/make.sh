#!/bin/sh
# How the files of this folder were made: make.sh QKV MAKE_SWEEP, with the program of 0.2.0 before figures had the
# recipes of studies, called version 0.2.0-a. They stay as they are; the case former.sh reads them.
qkv() { "$program" "$@" -q >/dev/null || echo "failed: $*"; }
program=$1
look='--panel-size 40 --labels none --no-notes'
# shellcheck disable=SC2086 # words
{
    qkv figure modify --tokens 5,6,7,8 --eps 0.5,0.25 --baseline --edit-heads all --scale log --range auto $look --dpi 50 \
        --title 'A *Title*' --report modify.md --report modify.json -o modify.png
    qkv figure modify -p 'The sea' --layer 2 --head -1 --skip-keys 1 --scale linear --no-axis-labels $look -o modify.pdf
    qkv figure mean -p 'The sea' --tokens 5,6,7 --layer auto --diff --scale power --gamma 0.7 $look --text text -o mean.svg
    qkv figure grid -p 'The sea' --layer 1 --head 0 --row 'A=q@{layer}.h{head}=zero' --row 'B=k@1=patch:other' \
        --col 'Plain=' --col 'Mean=v@0=mean:set' --source 'other=The man' --set-prompts set.txt --range 0,0.5 $look \
        --text text -o grid.svg --data grid.safetensors
    qkv figure grid --tokens 5,6,7 --tokens 8,9 --layer 1 --head 0 --show scores $look --dpi 50 -o scores.png
    qkv figure heads --tokens 5,6,7 --layers 1-2 --variant 'v@1=zero' --diff --panel-size 20 --dpi 50 -o heads.png
    qkv figure rows --tokens 5,6,7,8 --tokens 9,8,7 --query 2 --layer 2 --variant 'k@1=zero' --baseline $look --dpi 50 -o rows.png
    qkv figure rows --tokens 5,6,7,8 --head 1 $look --text text -o rows.svg
    qkv figure pattern --tokens 5,6,7 --layer 2 --head 0-1 --masked hatch --colormap magma --bar-label W $look --dpi 50 -o pattern.png
    qkv figure pattern --tokens 5,6,7 --layer -1 --head -1 --labels none --width 60mm -o pattern.pdf
    qkv figure pattern --tokens 5,6,7 --layer 2 --head 3 -o pattern.html
    qkv lens -p 'The sea' --answer ' was' --picture rank --no-notes --dpi 50 -o lens.png
    qkv roles -o roles.json
    qkv next -p 'The sea' --variant 'q@1=zero' -o next.json
    qkv measure -p 'The sea' --layers 2 -o measure.json
    qkv patch --clean 'The sea was' --corrupt 'The man was' --metric 'logit_diff: blue/ old' --text text -o patch.svg
    qkv weights ov --top 3 --no-notes --text text -o weights.svg
}
"$2" results.sqlite 2 2 2 q scale 1e-3,1 sink
qkv plot results.sqlite --layers 1 --dpi 50 -o plot.png
qkv plot results.sqlite --kind lines --text text -o plot.svg
