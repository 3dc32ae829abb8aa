# A conversation, written out by a template of our own: what is fed, in every command that takes a prompt.
cat >mill.jinja <<'END'
{{ bos_token }}{% for m in messages %}
[{{ m.role }}]{{ m.content | trim }}
{% endfor %}
{% if add_generation_prompt %}[assistant]{% endif %}{{ strftime_now(' %Y-%m-%d') }}
END
cat >greedy.json <<'END'
{"sweep": {"targets": "z", "ops": "zero", "layers": "0", "heads": "*", "at": "output"},
 "greedy": {"metric": "output_kl", "heads": 1, "candidates": 2}}
END
chat="--chat --template mill.jinja --date 2026-01-31 --show-prompt --system Short. --turn user=Hello --turn assistant=Hi"
# shellcheck disable=SC2086
{
    qkv tokens $chat ' What is a <|bos|> mill? ' >/dev/null
    qkv tokens $chat --parse-special ' What is a <|bos|> mill? ' >/dev/null
    qkv run $chat -p 'What is a mill?' --capture pattern@0 >/dev/null
    qkv measure $chat -p 'What is a mill?' --metrics sink --layers 0 >/dev/null
    qkv sweep $chat -p 'What is a mill?' --layers 0 --heads 0 --targets q --epsilon 0 -o out.sqlite >/dev/null 2>sweep.log
    sed -n '1,6p' sweep.log >&2
    qkv figure modify $chat -p 'What is a mill?' --layer 0 --head 0 --eps 0.1 -o out.png
    qkv recipe greedy.json $chat -p 'What is a mill?'
    # Sources are messages as well, and what is written down is what was fed.
    qkv run $chat -p 'What is a mill?' --source 'other=What is a road?' --variant 'q@0=patch:other' \
        --capture pattern@0 -o out.json
    qkv show out.json | grep prompt
}
printf '{%% for i in range(1000000000) %%}{%% endfor %%}' >endless.jinja
qkv tokens --chat --template endless.jinja 'What is a mill?' || echo $?
{ qkv tokens --chat 'What is a mill?' 2>&1 || echo $?; } | sed "s|$MODELS|MODELS|"
qkv tokens --system Short. 'What is a mill?' || echo $?
qkv tokens --chat --turn tool=1 'What is a mill?' || echo $?
qkv tokens --chat --template mill.jinja --date 2026-02-30 'What is a mill?' || echo $?
qkv run --chat --tokens 1,2 || echo $?
qkv recipe --chat || echo $?
