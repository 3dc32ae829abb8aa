# Mistakes of qkv serve, one line each.
for options in '--port 70000' '--port x' '--bind 0.0.0.0' '--token short --port 0' '--bind here --token 0123456789abcdef --port 0' \
    '-m no-such-model --port 0' '--max-tokens 0' 'operand'; do
    # The words are meant to be split.
    # shellcheck disable=SC2086
    qkv serve $options
    echo "status $?"
done
