# Patching: what is printed, files, several pairs.
clean='The river runs past the city, and people swim in the'
corrupt='The church runs past the city, and people swim in the'
patch() { qkv patch -q -t 1 --clean "$clean" --corrupt "$corrupt" --metric 'logit_diff: river/ church' "$@"; }
patch --direction both --top 4 -o all.csv -o all.json -o map.svg -o results.sqlite
short() { sed 's/\([0-9]\.[0-9]\{3\}\)[0-9]*/\1/g'; }
head -n 4 all.csv | short
wc -l <all.csv
patch --site z --by head --heads 1 --layers 2-3 --picture heads -o heads.png --top 2
patch --site k,v --site mlp_out --by position --positions 2,14 --layers 3 --metric kl --metric 'prob: river' --table cells
# Pairs from files, with answers of their own.
printf '%s\n' 'clean,corrupt,answer,wrong,note' \
    '"The river runs past the city, and people swim in the","The church runs past the city, and people swim in the", river, church,"one, of two"' \
    '"The sea runs past the city, and people swim in the","The church runs past the city, and people swim in the", sea, church,' >pairs.csv
cat >pairs.jsonl <<END
{"clean": "$clean", "corrupt": "$corrupt", "answer": " river", "wrong": " church"}
{"clean": "The sea runs past the city, and people swim in the", "corrupt": "$corrupt", "answer": " sea", "wrong": " church", "note": 2}
END
for file in pairs.csv pairs.jsonl; do
    qkv patch -q -t 1 --pairs $file --metric logit_diff --site resid_pre --layers 3 --top 2
done
qkv patch --clean "$clean" --corrupt "$corrupt" --metric kl --explain
qkv plot results.sqlite -o plot.png
ls
