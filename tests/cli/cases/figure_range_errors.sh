for options in '--layer 99 --head 0' '--layer 0 --head 99' '--skip-keys 100' '--tokens 99999999'; do
    # shellcheck disable=SC2086 # words
    qkv figure modify $options -o out.png
    echo "exit $?" >&2
done
qkv figure mean -p '' -o out.png
echo "exit $?" >&2
ls
