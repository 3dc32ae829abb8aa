# An encoder's queries see all keys: no cell is masked, and the first query has weights after itself.
numbers() { # the values of the first panel, a row to a line
    python3 - "$1" <<'PY'
import ast, struct, sys, zipfile

data = zipfile.ZipFile(sys.argv[1]).read("r0.c0.npy")
length = struct.unpack("<H", data[8:10])[0]
rows, cols = ast.literal_eval(data[10:10 + length].decode())["shape"]
values = struct.unpack("<%df" % (rows * cols), data[10 + length:])
for r in range(rows):
    row = values[r * cols:(r + 1) * cols]
    print("%d keys, all above 0: %s, sum %.4f" % (cols, min(row) > 0, sum(row)))
PY
}
model=$VECTORS/bert/model.gguf
qkv figure heads -m "$model" --tokens 5,6,7,8 --text text -o heads.svg --data heads.npz
qkv figure rows -m "$model" --tokens 5,6,7,8 --query 0 --text text -o rows.svg --data rows.npz
qkv figure grid -m "$model" --tokens 5,6,7,8 --tokens 9,8 --layer 0 --head 0 --text text -o grid.svg \
    --report grid.html
numbers heads.npz
numbers rows.npz
# The default model is not an encoder; a row of the figure rows is not a query.
qkv figure heads --tokens 5,6,7,8 --text text -o decoder_heads.svg
qkv figure rows --tokens 5,6,7,8 --query 1 --text text -o decoder_rows.svg
qkv figure grid --tokens 5,6,7,8 --tokens 9,8 --layer 0 --head 0 --text text -o decoder_grid.svg \
    --report decoder_grid.html
for file in heads rows grid decoder_heads decoder_rows decoder_grid; do
    sed 's/<[^>]*>//g' $file.svg | tr '\n' ' ' | grep -o 'masked cells are [a-z]*' | sed "s/^/$file: /"
done
for file in grid decoder_grid; do
    grep -o '"masked":[a-z]*,"causal":[a-z]*' $file.html | sort | uniq -c | sed 's/^ *//'
done
