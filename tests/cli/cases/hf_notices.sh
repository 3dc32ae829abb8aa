# Settings of config.json that have no effect are said once, and recorded in whatever the model makes.
mkdir model
sed 's/^{/{ "conversational": true, "abliterated": false, "nothing": null,/' "$VECTORS/llama/hf/config.json" >model/config.json
ln -s "$VECTORS/llama/hf/model.safetensors" "$VECTORS/llama/hf/tokenizer.json" model
qkv info -m model | grep notices
qkv info -m model --json | grep -A 2 notices
said='"model_notices": *"config.json: [a-zA-Z ]* were ignored: conversational, abliterated"'
qkv run -m model --tokens 1,20,30 --capture pattern@0.h0 -o out.safetensors
qkv figure modify -m model --tokens 1,20,30 --layer 0 --head 0 -o out.svg --data data.safetensors
qkv measure -m model --tokens 1,20,30 --metrics sink -o out.json >/dev/null
qkv sweep -m model --tokens 1,20,30 --layers 0 --heads 0 --targets q --epsilon 0.5 --metrics sink -o out.sqlite 2>progress
grep warning progress
qkv plot out.sqlite --metric sink -o plot.svg
grep -a -c "$said" out.safetensors
sed 's/\\"/"/g' data.safetensors | grep -a -c "$said"
sed 's/&quot;/"/g' out.svg | grep -c "$said"
grep -c "$said" out.json
sed 's/&quot;/"/g' plot.svg | grep -c "$said"
qkv convert model -o out.gguf
# Without any there is no such row.
qkv info -m out.gguf >facts && qkv info -m out.gguf --json >>facts && ! grep notices facts
