# The layer alone, the head alone; layers and heads from the end.
shown() { # ARGUMENT...: which layers and heads a figure has, by its recipe
    qkv figure "$@" -o a.svg && qkv recipe extract a.svg | python3 -c '
import json, sys
told = json.load(sys.stdin)
print("layer", told["layer"], "head", told["head"], "panels", len(told["panels"]), told["options"])'
}
shown modify --layer 1 | sed 's/head [0-3]/head SOME/'
shown modify --head 2 | sed 's/layer [0-5]/layer SOME/'
shown modify --layer -1 --head -2
shown heads --layer -2
shown pattern --layer -1 --head -2
shown pattern --layer -1 --head -2--1
shown heads --layer -7
