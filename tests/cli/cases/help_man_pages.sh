# A page for every command, without a complaint of groff's; every option and reduction is named.
qkv help --names | while read -r name; do
    # shellcheck disable=SC2086 # two words
    qkv help --man $name >page.1
    head -3 page.1 | tail -1
    if command -v groff >/dev/null; then groff -man -ww -z page.1; fi
    grep -c '^\.SH' page.1 | sed '/^6$/d'
done
qkv help --man >qkv.1
if command -v groff >/dev/null; then groff -man -ww -z qkv.1; fi
for word in first columns diagonals mean=N max=N sink; do
    grep -qxF "\\fB$word\\fR" qkv.1 || echo "no reduction $word in the page"
    qkv help notation | grep -q "^  $word " || echo "no reduction $word in the help"
done
qkv help --man weather
qkv help --names run
