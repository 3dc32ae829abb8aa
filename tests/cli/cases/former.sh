# Files of former versions (tests/former) are read, made again with the same numbers, and shown.
n=0
for folder in "$VECTORS"/../former/*/; do
    for file in "$folder"*.*; do
        case $file in
        *.sh | *.txt | *.sqlite) continue ;;
        *plot*) results="--results ${folder}results.sqlite" ;;
        *) results= ;;
        esac
        # shellcheck disable=SC2086 # two words or none
        qkv reproduce "$file" --check $results >said 2>&1 || echo "$(basename "$file"): $(cat said)"
        qkv show "$file" >said 2>&1 || echo "$(basename "$file"): $(cat said)"
        qkv recipe extract "$file" >recipe.json || echo "$(basename "$file"): no recipe"
        # shellcheck disable=SC2086
        qkv reproduce recipe.json --check $results >said 2>&1 || echo "$(basename "$file"), its recipe: $(cat said)"
        n=$((n + 1))
    done
done
echo "$n files"
# Drawings without small print are the same: with the former recipe put in, so is the file.
for name in modify scores rows pattern lens; do
    qkv reproduce "$folder/$name.png" -o made.png -q
    qkv recipe copy "$folder/$name.png" made.png
    cmp "$folder/$name.png" made.png
done
