# One command draws several pictures and writes several tables: -o FILE:NAME.
patch() {
    qkv patch -t 1 --clean 'The river runs past the city, and people swim in the' \
        --corrupt 'The church runs past the city, and people swim in the' \
        --metric 'logit_diff: river/ church' --layers 2-3 --top 2 "$@"
}
patch -o positions.png -o heads.png:heads -o heads.svg:heads -o cells.csv -o unedited.csv:unedited
for f in positions.png heads.png heads.svg; do qkv reproduce $f --check; done
wc -l <cells.csv
head -n 1 unedited.csv
patch --no-recipe -o a.svg:heads -o b.svg >/dev/null
patch --no-recipe --picture heads -o same.svg -o c.svg:positions >/dev/null
cmp a.svg same.svg
cmp b.svg c.svg
cmp a.svg b.svg >/dev/null || echo different
qkv lens -p 'The river runs to the' --answer ' sea' --top 1 -o rank.svg:rank -o top.csv:top >/dev/null
head -n 1 top.csv
try() { "$@" >out; echo "exit $?, $(wc -c <out) bytes" >&2; }
try patch -o x.png:hads
try patch -o x.csv:nothing
try patch -o x.html:heads
try patch -o x.json:cells
try patch -o x.png:heads -o x.png:positions
try patch -o x.txt:heads
ls
