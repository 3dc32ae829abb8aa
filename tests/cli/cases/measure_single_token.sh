# What is undefined says so: one token.
qkv measure --tokens 5 --layers 0 --heads 0 --metrics sink,diagonal,entropy,loss,uniformity --no-recipe -o out.csv -o out.json
cat out.csv
grep -c null out.json
