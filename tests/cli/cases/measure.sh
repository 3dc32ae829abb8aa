# Values edited in their own layer change no pattern; queries edited in one head change that head alone.
qkv measure --tokens 5,6,7,8,9 --tokens 9,8,7 --metrics sink,tv,output_kl,sink:1 --layers 2,3 --heads 0-1 \
    --variant 'v@3=zero' --variant 'q@2.h1=scale:1e-10 + v@4.h0=scale:2' -o out.csv -o out.json >summary.txt
head -n 1 out.csv
cut -d, -f1-5 out.csv | sed -n 2,15p
echo "rows: $(wc -l <out.csv) $(grep -c '^ *"sink:1",$' out.json)"
echo "TV of the value edit: $(grep ',v@3=zero,.*,tv,' out.csv | cut -d, -f6 | sort -u)"
echo "TV of the query edit below and beside it: $(grep ',q@2.*,2,0,tv,' out.csv | cut -d, -f6 | sort -u)"
awk -F, '$5 == "tv" && $2 ~ /^q@2/ && $3 == 2 && $4 == 1 { print "head 1 moved:", ($6 > 0.01) }' out.csv
awk -F, '$5 == "output_kl" && $2 != "baseline" { print "output moved:", ($6 > 0) }' out.csv
sed 1d summary.txt | sed 's/ +.*scale:2//' | awk '{ print $1, $2 }'
