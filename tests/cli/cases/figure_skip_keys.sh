# Without the first keys, colours end at the largest weight that is shown.
qkv figure modify --layer 1 --head 1 --tokens 5,6,7,8 --skip-keys 1 -o out.svg --data out.safetensors
shown=$(grep -aoE '"head":[0-9]+,"range":[^]]*' out.svg | cut -d, -f3)
largest=$(tail -c 432 out.safetensors | od -An -v -w4 -tf4 | sort -g | tail -n 1)
awk -v shown="$shown" -v largest="$largest" \
    'BEGIN { d = shown - largest; print (d < 1e-6 && d > -1e-6 && largest < 0.99 ? "equal" : shown " " largest) }'
qkv figure modify --layer 1 --head 1 --tokens 5,6,7,8 -o out.svg
grep -aoE '"head":[0-9]+,"range":[^]]*]' out.svg
qkv figure modify --layer 1 --head 1 --tokens 5,6,7,8 --skip-keys 1 --range 0,0.5 -o out.svg
grep -aoE '"head":[0-9]+,"range":[^]]*]' out.svg
