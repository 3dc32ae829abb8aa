# Mistakes: one line each, and nothing is written.
clean='The river runs to the'
patch() { qkv patch -t 1 "$@" -o out.sqlite -o out.png || echo "exit $?" >&2; }
two() { patch --clean "$clean" --corrupt 'The church runs to the' "$@"; }
patch --metric kl
patch --clean "$clean" --metric kl
two
patch --clean "$clean" --corrupt "$clean" --metric kl
patch --clean "$clean" --corrupt 'The old church runs to the' --metric kl
patch --clean '' --corrupt "$clean" --metric kl
two --metric 'logit_diff: river/ riverbank'
two --metric 'logit_diff: river'
two --metric logit_diff
two --metric logit_dif
two --metric 'logit: river@9'
two --metric 'logit: river@1'
two --metric kl --site rasid_pre
two --metric kl --site mlp_out --by head
two --metric kl --by heads
two --metric kl --site resid_pre --heads 1
two --metric kl --positions 3-9
two --metric kl --layers 7
two --metric kl --direction up
two --metric kl --align middle
two --metric kl --shard 1/2
two --metric kl --shard 3/2
: >pairs.csv
two --metric kl --pairs pairs.csv
patch --pairs pairs.csv --metric kl
patch --pairs none.csv --metric kl
printf 'clean,wrong\na,b\n' >pairs.csv
patch --pairs pairs.csv --metric kl
printf 'clean,corrupt\nThe river,The church\nThe sea\n' >pairs.csv
patch --pairs pairs.csv --metric kl
printf 'clean,corrupt\nThe river,The church\nThe old river,The old church\n' >pairs.csv
patch --pairs pairs.csv --metric kl
echo '{"clean": 3, "corrupt": "b"}' >pairs.jsonl
patch --pairs pairs.jsonl --metric kl
echo '["a"]' >pairs.jsonl
patch --pairs pairs.jsonl --metric kl
rm pairs.csv pairs.jsonl
ls
