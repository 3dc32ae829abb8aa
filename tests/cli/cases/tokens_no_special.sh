# Without the token that begins a text there is one row less.
all=$(qkv tokens 'The river' | wc -l)
bare=$(qkv tokens --no-special 'The river' | wc -l)
echo $((all - bare))
