# Patching: what is printed, files, several pairs, and the same cells one by one with 'qkv next'.
clean='The river runs past the city, and people swim in the'
corrupt='The church runs past the city, and people swim in the'
patch() { qkv patch -q -t 1 --clean "$clean" --corrupt "$corrupt" --metric 'logit_diff: river/ church' "$@"; }
patch --direction both --top 4 -o all.csv -o all.json -o map.svg -o results.sqlite
short() { sed 's/\([0-9]\.[0-9]\{3\}\)[0-9]*/\1/g'; }
head -n 4 all.csv | short
wc -l <all.csv
patch --site z --by head --heads 1 --layers 2-3 --picture heads -o heads.png --top 2
patch --site k,v --site mlp_out --by position --positions 2,14 --layers 3 --metric kl --metric 'prob: river' --table cells
# A cell is what a run with its edit alone gives, and so are its rows.
qkv next -q -t 1 -p "$corrupt" --source "clean=$clean" --diff ' river/ church' \
    --variant 'resid_pre@3[2]=patch:clean' -o next.csv >/dev/null
alone=$(tail -n 1 next.csv | tr ',' '\n' | grep -x '[0-9]\.[0-9]\{6,\}' | head -n 1)
cell=$(grep 'denoise,resid_pre,3,,2,' all.csv | sed 's/.*,//')
qkv sweep export results.sqlite -o rows.csv 2>/dev/null
row=$(grep '^1,3,-1,resid_pre,patch:clean,.*,2$' rows.csv | sed 's/,2$//; s/.*,//')
echo "$alone $cell $row" | awk '{ print $1 == sprintf("%.8g", $2) && $2 == $3 ? "the same" : $0 }'
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
