qkv figure modify -o modify.png -o modify.svg -o modify.pdf
head -c 8 modify.png | od -An -c
head -c 5 modify.pdf
echo
grep -c '<svg' modify.svg
ls
