# A figure says what it shows: model, layer and head, operations, tokens; and how to make it again.
qkv figure modify --layer 0 --head 1 --tokens 5,6,7 --eps 5e-1 -o out.svg
grep -ao '"command":\[[^]]*\]' out.svg | head -n 1
grep -ao '"model_hash":"[0-9a-f]*"' out.svg | head -n 1 | wc -c
grep -ao '"edits":"[^"]*"' out.svg | head -n 3
