qkv tokens -- --help | tail -n +2 | grep -c help || echo none
