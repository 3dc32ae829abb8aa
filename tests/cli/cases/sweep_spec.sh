# The same by a file and by options, which win.
cat >spec.json <<END
{
  "prompts": ["The river runs to the sea.", [1, 2, 3]],
  "layers": [1],
  "targets": ["q"],
  "epsilon": "logspace:1e-2,1,3",
  "metrics": ["tv"]
}
END
qkv sweep spec.json --heads 0-1 -o a.sqlite 2>stderr || cat stderr
qkv sweep spec.json -p 'The river runs to the sea.' --tokens 1,2,3 --heads 0,1 --layers 1 \
    --epsilon 0.01,0.1,1 -o b.sqlite 2>stderr || cat stderr
qkv sweep export a.sqlite -o a.csv
qkv sweep export b.sqlite -o b.csv
cmp a.csv b.csv && wc -l <a.csv
qkv sweep spec.json --explain
