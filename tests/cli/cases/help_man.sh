# The manual page has every section, and every option of every command.
qkv help --man >page
grep '^\.S[HS]' page
grep "^\.S[HS]" page | sort | uniq -d | sed "s/^/twice: /"
for command in info tokens run 'figure modify' 'figure mean' 'figure grid' bench; do
    # shellcheck disable=SC2086 # two words
    qkv help $command | sed -n 's/^ .*--\([a-z-]*\).*/\1/p' | grep -v '^help$' | sed 's/-/\\-/g' |
        while read -r option; do
            grep -qF "\\-\\-$option" page || echo "missing: $option"
        done
done
