# Two models as tables and files; one and its edited self; what cannot be compared.
short() { sed 's/\([0-9]\.[0-9]\{3\}\)[0-9]*/\1/g'; }
cp "$MODELS/default.gguf" full.gguf
qkv convert full.gguf -o small.gguf --type q4_0
printf '%s\n' 'The river runs past the old mill.' 'In the evening the lamps are lit.' >prompts.txt
qkv compare -m full.gguf -m small.gguf -f prompts.txt --top 5 -o c.png -o c.svg -o c.pdf -o c.csv -o c.json -o c.sqlite
short <c.csv
for table in layers prompts flips; do qkv compare -m full.gguf -m small.gguf -f prompts.txt --table $table; done
for picture in ranking angles errors positions; do
    qkv compare -m full.gguf -m small.gguf -f prompts.txt --picture $picture -o $picture.svg >/dev/null
done
# Made again, with both models given; the error names the option that is missing.
qkv reproduce c.png --check -m full.gguf --other small.gguf
qkv reproduce c.png --check -m full.gguf || echo "exit $?" >&2
for distance in js kl max; do
    qkv compare -m full.gguf -m small.gguf -f prompts.txt --distance $distance --top 1 | tail -1
done
qkv compare -m full.gguf --edit 'q@3.h1=zero' -f prompts.txt --top 2
cp "$VECTORS/bert/model.gguf" encoder.gguf
qkv compare -m encoder.gguf -m encoder.gguf --tokens 1,2,3 --top 1

cp "$VECTORS/llama/model.gguf" tiny.gguf
cp "$VECTORS/gpt2/model.gguf" gpt2.gguf
try() { qkv compare "$@" >out; echo "exit $?, $(wc -c <out) bytes" >&2; }
try
try -m full.gguf
try -m full.gguf -m small.gguf
try -m full.gguf -m small.gguf -m full.gguf -p x
try -m full.gguf -m nothing.gguf -p x
try -m full.gguf -m tiny.gguf -p x
try -m full.gguf -m gpt2.gguf -p x
try -m full.gguf -m small.gguf -p x --edit 'q@9=zero'
try -m full.gguf -m small.gguf -p x --distance cosine
try -m full.gguf -m small.gguf -p x --edit 'v@2=scale:1'
ls
