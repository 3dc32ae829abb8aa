# What is handed on does not say where on somebody's machine things lie: of paths it holds the last
# part alone. Prompts, titles and edits stay as they are, slashes and all.
here=$PWD/hidden-place
mkdir "$here"
cp "$MODELS/default.gguf" "$here/model.gguf"
echo 'one and/or two three' >"$here/prompts.txt"
export QKV_MODEL="$here/model.gguf"
quiet() { "$@" >/dev/null 2>said || cat said; }

quiet qkv run -f "$here/prompts.txt" --capture pattern@1.h0 -o "$here/run.safetensors" -o "$here/run.json" \
    --variant 'q@0=patch:other' --source "other=@$here/prompts.txt"
quiet qkv measure -f "$here/prompts.txt" -o "$here/measure.csv" -o "$here/measure.json"
quiet qkv figure modify -m "$here/model.gguf" --file="$here/prompts.txt" -o "$here/figure.png" -o"$here/figure.svg" \
    --output="$here/figure.pdf" --data "$here/data.safetensors" --report "$here/report.html" \
    --report="$here/report.md" --report "$here/report.json" --title 'either/or'
printf 'a/b c d f' >"$here/same.txt"
quiet qkv figure grid -p 'a/b c d e' -o "$here/grid.svg" --row 'one=q@0=zero' --row "two=q@0=patch:other" \
    --source "other=@$here/same.txt" --layer 0 --head 0
quiet qkv sweep -f "$here/prompts.txt" --epsilon 0.5 --metrics tv --layers 0 -t 1 -o "$here/sweep.sqlite"
quiet qkv sweep export "$here/sweep.sqlite" -o "$here/sweep.csv" -o "$here/sweep.json"
quiet qkv plot "$here/sweep.sqlite" --target q -o "$here/plot.png" -o "$here/plot.svg" -o "$here/plot.pdf"
quiet qkv convert "$VECTORS/llama/hf" -o "$here/converted.gguf"

cd "$here" && ls
grep -al "hidden-place\|${VECTORS#/}" ./*
grep -o '"command":\[[^]]*' figure.svg grid.svg plot.svg
