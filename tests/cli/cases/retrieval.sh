# Retrieval heads: rankings with the answer fed, needles from a file, files to resume from, and what is refused.
needle='The key to the old boathouse hangs behind the kitchen clock, next to the calendar.'
qkv recipe retrieval-heads -t 1 --set decode=forced --set lengths=70,100 --set depths=0,1 -o heads.png -o page.html \
    -o all.json
qkv recipe retrieval-heads -t 1 --set lengths=70 --set depths=0.5 --set tokens=8 --set all=true --table tests \
    --resume answers.sqlite | awk '{ print $1, $2, $3, $4, $5, $6, $7, $9 }'
qkv recipe retrieval-heads -t 1 --set lengths=70 --set depths=0.5 --set tokens=8 --resume answers.sqlite
printf '{"needle": "%s", "question": "Where?", "real_needle": "Behind the kitchen clock"}\n\n' "$needle" >needles.jsonl
printf '{"needle": "Snow fell in May.", "question": "When did snow fall?"}\n' >>needles.jsonl
qkv recipe retrieval-heads -t 1 --set decode=forced --needles needles.jsonl --set lengths=64 --set depths=1 --table tests |
    awk '{ print $1, $2, $3, $4, $6, $7, $9, $11, $12, $13, $14 }'
qkv reproduce heads.png --check
printf '{%% for m in messages %%}[{{ m.role }}] {{ m.content }}\n{%% endfor %%}[assistant]' >chat.jinja
qkv recipe retrieval-heads -t 1 --chat --template chat.jinja --system Hi --set decode=forced --set depths=1 | sed -n 3,4p
fails() {
    qkv recipe "$@" >out
    echo "exit $?: $(cat out)"
}
fails retrieval-heads --set needle=
fails retrieval-heads --needles nowhere.jsonl
fails retrieval-heads --tokens 1,2,3
: >empty.txt
fails retrieval-heads --file empty.txt
fails retrieval-heads --chat 2>&1 | sed "s|$MODELS|MODELS|"
fails retrieval-heads --system Hi
fails retrieval-heads --chat --turn user=Hi
fails undifferentiated -p Hi --needles needles.jsonl
