# Studies of Zhou et al. as recipes: rankings, sets of heads, phrase rates, and what is refused.
printf 'The river runs past the old mill.\nBread is made of flour and water.\nThe library opens at nine.\n' >prompts.txt
qkv recipe ships -f prompts.txt -t 1 -o ships.json | awk 'NR < 6 { print $1, $2, $3 }'
qkv recipe ships -f prompts.txt -t 1 --set target=v --parity --table prompts | awk 'NR < 6 { print $1, $2, $3, $4 }'
qkv recipe sahara -f prompts.txt -t 1 --resume steps.sqlite --set steps=2 | awk '{ print $1, $2, $3 }'
qkv recipe sahara -f prompts.txt -t 1 --resume steps.sqlite --set steps=3 | awk '{ print $1, $2, $3 }'
qkv recipe generalised-ships -f prompts.txt -t 1 --set space=feature | awk 'NR < 5 { print $1, $2, $3 }'
printf "The\nI'm sorry\n" >phrases.txt
qkv recipe phrase-rates -f prompts.txt -t 1 --phrases phrases.txt --heads-from ships.json --set top=2 --set tokens=8 \
    --set one_by_one=true | awk '{ print $1, $2, $3, $7 }'
fails() {
    qkv recipe "$@" >out
    echo "exit $?: $(cat out)"
}
fails generalised-ships -f prompts.txt --set rank=3
fails ships -p Hi --set nothing
fails sahara -f prompts.txt --set steps=2 --set epsilon=0.5 --resume steps.sqlite
: >empty.txt
fails phrase-rates -p Hi --phrases empty.txt
fails phrase-rates -p Hi --heads-from ships.json --set top=99
fails undifferentiated -p Hi --parity
printf '{"study": "ships", "sweep": {}}' >mixed.json
fails mixed.json -p Hi
printf '{"study": "shops"}' >unknown.json
fails unknown.json -p Hi
