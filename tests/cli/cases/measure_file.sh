# A file has one prompt a line; metrics over all prompts have none.
printf 'The river runs to the sea.\n\nA good idea.\r\nThe end\n' >prompts.txt
qkv measure -f prompts.txt -p 'One more.' --metrics sink_rate,subspace_angle,subspace_angle:9 --variant 'v@0=zero' -o out.csv \
    | awk '{ print $1, $2, ($3 > 0) }' | grep angle
cut -d, -f1-5 out.csv
printf 'Alone' | qkv measure -f - --metrics upper,symmetry
: >empty.txt
qkv measure -f empty.txt
echo "exit $?"
printf '\n\n' >empty.txt
qkv measure -f empty.txt
echo "exit $?"
