qkv tokens --json 'The river'
