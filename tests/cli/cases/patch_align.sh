# Prompts of different length: a cell is what a run with its edit alone gives.
clean='The river runs past the city, and people swim in the'
corrupt='Today the church runs past the city, and people swim in the'
short() { sed 's/\([0-9]\.[0-9]\{3\}\)[0-9]*/\1/g'; }
for align in suffix prefix '0=0,2=3'; do
    qkv patch -q -t 1 --clean "$clean" --corrupt "$corrupt" --metric 'logit_diff: river/ church' --align "$align" \
        --layers 2 --site resid_pre --site z --top 2 -o all.csv
    short <all.csv | head -n 3
    wc -l <all.csv
done
cell=$(grep 'denoise,resid_pre,2,,2,' all.csv | sed 's/.*,//')
qkv next -q -t 1 -p "$corrupt" --source "clean=$clean" --diff ' river/ church' \
    --variant 'resid_pre@2[3<-2]=patch:clean' -o next.csv >/dev/null
alone=$(tail -n 1 next.csv | tr ',' '\n' | grep -x '[0-9]\.[0-9]\{6,\}' | head -n 1)
echo "$alone $cell" | awk '{ print $1 == sprintf("%.9g", $2) ? "the same" : $0 }'
