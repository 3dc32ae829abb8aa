# Which file cannot be written, and why.
fails() { # REASON PATH
    said=$(qkv sweep $sweep -p 'A text.' -o "$2" 2>&1) && echo "written: $2"
    case $said in
    *"qkv: cannot write $2: $1") ;;
    *) echo "$2: $said" ;;
    esac
}
sweep='--layers 0 --heads 0 --targets q --epsilon 0.5 --metrics sink'
fails 'No such file or directory' nowhere/x.sqlite
fails 'it is not a regular file' .
# Root may write to every file.
if [ "$(id -u)" != 0 ]; then
    qkv sweep $sweep -p 'A text.' -o x.sqlite 2>/dev/null
    chmod 444 x.sqlite
    fails 'Permission denied' x.sqlite
fi
true
