# The list, a recipe printed, changed and run; its results kept.
qkv recipe
qkv recipe gu-sink --print >mine.json
sed -i 's/"length": 64/"length": 20/' mine.json
qkv recipe mine.json -p 'The river runs past the old mill and turns south below the bridge, where the fields are wet until April.' \
    -o mine.sqlite 2>/dev/null | sed 's/  *[0-9.]*$//'
qkv sweep export mine.sqlite -o mine.csv && cut -d, -f1-7 mine.csv
ls
qkv recipe kivi --help
qkv recipe gu-sink --help | tail -n 3
