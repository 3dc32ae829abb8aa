# A chart says how to make it again, and from what.
"$MAKE_SWEEP" r.sqlite 2 2 2 q scale 1e-3,1 sink || exit
qkv plot r.sqlite --layers 1 -o out.svg
sed -n 's|.*<metadata id="qkv-recipe">\(.*\)</metadata>.*|\1|p' out.svg
