# The map of a head: one, several, edited, compared; and what it refuses.
qkv figure pattern --layer 2 --head 3 --tokens 5,6,7 --data one.csv -o one.svg
cat one.csv
qkv figure pattern --layer 2 --head 1,3 --tokens 5,6,7 --data two.csv -o two.svg -o two.html
head -4 two.csv
qkv figure pattern --layer 2 --head 0-3 --variant 'q@2=zero' --diff --tokens 5,6,7 -o four.png
qkv figure pattern --layer 2 --head 3 --variant 'q@2=zero' --baseline --tokens 5,6,7 --report r.json -o three.png
for f in one.svg two.svg two.html four.png three.png; do qkv reproduce $f --check; done
qkv figure pattern --layer 2 --head 1,9 --tokens 5,6,7 -o no.svg
qkv figure pattern --head 1,2 --tokens 5,6,7 -o no.svg
qkv figure pattern --head x --tokens 5,6,7 -o no.svg
qkv figure pattern --diff --tokens 5,6,7 -o no.svg
qkv figure pattern --layer 2 --head 0,1 --tokens 5,6,7 --report no.md
qkv figure pattern --layer 2 --head 0 --tokens 5,6,7 --variant 'v@2=zero' -o idle.svg
ls
