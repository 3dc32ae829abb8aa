# Prompts of different length: aligned, a cell is what 'next' gives with tokens of both prompts.
clean='The river runs past the city, and people swim in the'
corrupt='The big church runs past the city, and people swim in the'
patch() { qkv patch -q -t 1 --clean "$clean" --corrupt "$corrupt" --metric 'logit_diff: river/ church' --no-recipe "$@"; }
for align in suffix prefix 0-1=0-1,2=3; do
    patch --align $align --site resid_pre,z --top 1 -o $align.csv >out
    cut -d, -f3 $align.csv | sort | uniq -c | tr -s ' '
done
cell() { awk -F, -v site=$1 -v place=$2 '$3 == site && $4 == 3 && $5 "," $6 == place { printf "%.8g\n", $9 }' suffix.csv; }
alone() {
    qkv next -q -p "$corrupt" --source "clean=$clean" --variant "$1=patch:clean" --diff ' river/ church' -o - |
        tail -n 1 | awk -F, '{ printf "%.8g\n", $9 }'
}
for pair in 'resid_pre ,2 resid_pre@3[3<-2]' 'resid_pre ,14 resid_pre@3[15<-14]' 'z 2, z@3.h2[1:16<-0:15]'; do
    set -- $pair
    [ "$(cell $1 $2)" = "$(alone "$3")" ] && echo "$3: the same" || echo "$3: $(cell $1 $2), alone $(alone "$3")"
done
patch -o out.png || echo "exit $?" >&2
ls
