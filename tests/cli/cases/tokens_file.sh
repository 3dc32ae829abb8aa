printf 'The river runs.\n' >text
qkv tokens -f text >from_file
qkv tokens -f - <text >from_input
qkv tokens 'The river runs.' >from_words
cmp from_file from_words && cmp from_input from_words
