# A pair of texts for BERT: the tokens after the first separator are of the second segment, and its embedding is added.
python3 - <<'PY'
import json, os, random, struct
random.seed(7)
D, FF, words = 8, 16, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "mill", "river", "runs", "."]
os.makedirs("bert")
json.dump({"architectures": ["BertModel"], "model_type": "bert", "hidden_size": D, "intermediate_size": FF,
           "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": len(words), "max_position_embeddings": 32,
           "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}, open("bert/config.json", "w"))
special = [{"id": i, "content": w, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": True} for i, w in enumerate(words[:4])]
one = lambda w: {"SpecialToken": {"id": w, "type_id": 0}}
text = {"Sequence": {"id": "A", "type_id": 0}}
named = {w: {"id": w, "ids": [words.index(w)], "tokens": [w]} for w in ("[CLS]", "[SEP]")}
json.dump({"version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
           "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                          "strip_accents": None, "lowercase": True},
           "pre_tokenizer": {"type": "BertPreTokenizer"},
           "post_processor": {"type": "TemplateProcessing", "single": [one("[CLS]"), text, one("[SEP]")],
                              "pair": [one("[CLS]"), text, one("[SEP]"), {"Sequence": {"id": "B", "type_id": 1}},
                                       {"SpecialToken": {"id": "[SEP]", "type_id": 1}}], "special_tokens": named},
           "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
           "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                     "max_input_chars_per_word": 100, "vocab": {w: i for i, w in enumerate(words)}}},
          open("bert/tokenizer.json", "w"))
shapes = {"embeddings.word_embeddings.weight": [len(words), D], "embeddings.position_embeddings.weight": [32, D],
          "embeddings.token_type_embeddings.weight": [2, D], "embeddings.LayerNorm.weight": [D],
          "embeddings.LayerNorm.bias": [D]}
for part, rows, cols in (("attention.self.query", D, D), ("attention.self.key", D, D), ("attention.self.value", D, D),
                         ("attention.output.dense", D, D), ("intermediate.dense", FF, D), ("output.dense", D, FF)):
    shapes[f"encoder.layer.0.{part}.weight"], shapes[f"encoder.layer.0.{part}.bias"] = [rows, cols], [rows]
for part in ("attention.output", "output"):
    shapes[f"encoder.layer.0.{part}.LayerNorm.weight"] = shapes[f"encoder.layer.0.{part}.LayerNorm.bias"] = [D]
header, data, values = {}, b"", {}
for name, shape in shapes.items():
    n = shape[0] * (shape[1] if len(shape) > 1 else 1)
    values[name] = [random.uniform(-1, 1) for _ in range(n)]
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * n]}
    data += struct.pack(f"<{n}f", *values[name])
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open("bert/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
json.dump(values, open("values.json", "w"))
PY
qkv tokens -m bert -p 'The mill. [SEP] The river runs.' --parse-special
qkv run -m bert -p 'The mill. [SEP] The river runs.' --parse-special --capture resid_pre@0 -o out.safetensors
python3 - <<'PY'
import json, math, struct
values, D = json.load(open("values.json")), 8
row = lambda name, i: values[f"embeddings.{name}.weight"][D * i:D * i + D]
raw = open("out.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
header = json.loads(raw[8:8 + n])
first, last = next(v for k, v in header.items() if "resid_pre" in k)["data_offsets"]
found = struct.unpack(f"<{(last - first) // 4}f", raw[8 + n + first:8 + n + last])
ids, worst = json.loads(header["__metadata__"]["tokens"]), 0
segments = [int(i > ids.index(3)) for i in range(len(ids))]
for t, (token, segment) in enumerate(zip(ids, segments)):
    x = [a + b + c for a, b, c in zip(row("word_embeddings", token), row("position_embeddings", t),
                                      row("token_type_embeddings", segment))]
    mean = sum(x) / D
    size = math.sqrt(sum((v - mean) ** 2 for v in x) / D + 1e-12)
    for i, v in enumerate(x):
        y = (v - mean) / size * values["embeddings.LayerNorm.weight"][i] + values["embeddings.LayerNorm.bias"][i]
        worst = max(worst, abs(y - found[t * D + i]))
print("segments", segments, "embeddings differ by less than 1e-5:", worst < 1e-5)
PY
qkv figure pattern -m bert --layer 0 --head 1 -p 'The mill.' --pair 'The river runs.' --data pair.csv -o pair.svg
qkv figure pattern -m bert --layer 0 --head 1 -p 'The mill. [SEP] The river runs.' --parse-special --data one.csv
cmp pair.csv one.csv && echo "the same numbers"
qkv reproduce pair.svg -m bert --check
qkv figure pattern --layer 0 --head 1 -p 'The mill.' --pair 'The river.' -o no.svg 2>&1 | sed 's|; .*/|; |'
qkv figure pattern -m bert -p 'The mill.' -p 'The river.' --pair 'It runs.' -o no.svg
# RoBERTa has no segments, and two separators; ModernBERT says with a template that it has one.
with() { cp -r "$VECTORS/$1/hf" "$1" && chmod -R u+w "$1" && sed -i "s|\"post_processor\": null|\"post_processor\": $2|" "$1/tokenizer.json"; }
one() { echo "{\"SpecialToken\": {\"id\": \"$1\", \"type_id\": 0}}"; }
text() { echo "{\"Sequence\": {\"id\": \"$1\", \"type_id\": 0}}"; }
named() { echo "\"$1\": {\"id\": \"$1\", \"ids\": [$2], \"tokens\": [\"$1\"]}"; }
with roberta '{"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1], "trim_offsets": true, "add_prefix_space": false}'
with modernbert "{\"type\": \"TemplateProcessing\", \"single\": [$(one '<s>'), $(text A), $(one '</s>')], \"pair\": [$(one '<s>'), $(text A), $(one '</s>'), $(text B), $(one '</s>')], \"special_tokens\": {$(named '<s>' 1), $(named '</s>' 2)}}"
for model in roberta modernbert; do
    qkv convert $model -o $model.gguf >out
    for m in $model $model.gguf; do
        qkv figure pattern -m $m --layer 0 --head 1 -p 'the mill' --pair 'the sea' --data pair.csv -o pair.svg
        qkv show pair.svg | sed -n "s/^inputs *//p"
        qkv reproduce pair.svg -m $m --check
    done
done
qkv figure pattern -m "$VECTORS/roberta/model.gguf" -p 'the mill' --pair 'the sea' -o no.svg 2>&1 | sed 's|of .*/|of |'
# The same BERT with the tokenizer of XLM-RoBERTa: every token is of the first segment, and its row is what is added.
cp -r bert multilingual
python3 - <<'PY'
import json
t = json.load(open("bert/tokenizer.json"))
words = list(t["model"]["vocab"])
t["normalizer"] = None
t["pre_tokenizer"] = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
t["decoder"] = t["pre_tokenizer"]
t["model"] = {"type": "Unigram", "unk_id": 1, "byte_fallback": False,
              "vocab": [[w if i < 4 else "\u2581" + w, -1.0] for i, w in enumerate(words)]}
for part in t["post_processor"]["pair"]:
    next(iter(part.values()))["type_id"] = 0
json.dump(t, open("multilingual/tokenizer.json", "w"))
PY
cat >segments.py <<'PY'
import json, math, struct, sys
values, D = json.load(open("values.json")), 8
row = lambda name, i: values[f"embeddings.{name}.weight"][D * i:D * i + D]
raw = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
header = json.loads(raw[8:8 + n])
first, last = next(v for k, v in header.items() if "resid_pre" in k)["data_offsets"]
found = struct.unpack(f"<{(last - first) // 4}f", raw[8 + n + first:8 + n + last])
ids = json.loads(header["__metadata__"]["tokens"])
for second in range(2):
    worst = 0
    for t, token in enumerate(ids):
        x = [a + b + c for a, b, c in zip(row("word_embeddings", token), row("position_embeddings", t),
                                          row("token_type_embeddings", second and int(t > ids.index(3))))]
        mean = sum(x) / D
        size = math.sqrt(sum((v - mean) ** 2 for v in x) / D + 1e-12)
        for i, v in enumerate(x):
            y = (v - mean) / size * values["embeddings.LayerNorm.weight"][i] + values["embeddings.LayerNorm.bias"][i]
            worst = max(worst, abs(y - found[t * D + i]))
    print(ids, "two segments:" if second else "one segment:", worst < 1e-5)
PY
for m in bert multilingual; do
    qkv run -m $m --tokens 2,4,5,3,4,6,3 --capture resid_pre@0 -o $m.safetensors
    python3 segments.py $m.safetensors
done
qkv figure pattern -m multilingual --layer 0 --head 1 -p 'the mill' --pair 'the river' -o multilingual.svg
qkv show multilingual.svg | sed -n 's/^inputs *//p'
