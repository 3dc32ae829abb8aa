# The manual page has every section, and that of every command all of its options.
qkv help --man >page
grep '^\.S[HS]' page
grep "^\.S[HS]" page | sort | uniq -d | sed "s/^/twice: /"
qkv help --names | while read -r command; do
    # shellcheck disable=SC2086 # two words
    qkv help --man $command >page
    # shellcheck disable=SC2086
    qkv help $command | sed -n 's/^ .*--\([a-z-]*\).*/\1/p' | grep -v '^help$' | sed 's/-/\\-/g' |
        while read -r option; do
            grep -qF "\\-\\-$option" page || echo "$command, missing: $option"
        done
done
