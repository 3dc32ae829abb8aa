# A disk without room for the cells: one line, and no file that holds nothing.
trap '' XFSZ
ulimit -f 16
qkv sweep -p "A short text." --epsilon logspace:1e-10,1,40 -o full.sqlite
echo "exit $?"
ls
