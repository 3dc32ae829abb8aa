# The two published figures in numbers: every statement holds or says that it does not.
qkv figure modify --layer 5 --head 0 --report out.md --report out.html --report out.json
grep -c '| holds |' out.md
grep -c 'does not hold' out.md
grep -o '^| [^|]*| holds |' out.md
grep -o '^| [^|]*| \*\*[a-z]*\*\* |' out.md
grep '^- .*Value.*bit for bit$' out.md
# Whether Query and Key agree to the last bit is the processor's.
grep -o '"verdict":"holds"' out.html | wc -l
grep -o '"verdict": "[^"]*"' out.json | sort | uniq -c | awk '{ print $1, $3 }'
grep -o '"identical_to": [0-9]*' out.json | tail -n 3
qkv figure mean --layer 5 --head 0 --baseline --diff --report out.md
echo "exit $?"
qkv figure mean --layer 5 --head 0 --skip-keys 1 -o out.png --report mean.md --report mean.json
ls
grep -o '^| [^|]*| [^|]*hold[s*]* |' mean.md
