qkv tokens 'The river runs.'
