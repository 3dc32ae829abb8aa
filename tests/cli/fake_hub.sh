# shellcheck shell=sh
# Sourced by cases: a cache as Hugging Face's tools leave it, in $HF_HUB_CACHE, made of links to blobs.

hub_digests=0

# hub_folder REPOSITORY: where it is in the cache
hub_folder() {
    echo "$HF_HUB_CACHE/models--$(printf %s "$1" | sed 's,/,--,')"
}

# hub_add REPOSITORY COMMIT FILE SOURCE: one file of a snapshot, or a link to nowhere where SOURCE is -.
hub_add() {
    folder=$(hub_folder "$1")
    hub_digests=$((hub_digests + 1))
    mkdir -p "$folder/blobs" "$(dirname "$folder/snapshots/$2/$3")"
    up=$(dirname "$3" | sed 's,^\.$,,; s,[^/][^/]*,..,g; s,$,/,; s,^/$,,')
    ln -s "$up../../blobs/digest$hub_digests" "$folder/snapshots/$2/$3"
    [ "$4" = - ] || cp "$4" "$folder/blobs/digest$hub_digests"
}

# hub_ref REPOSITORY REVISION COMMIT
hub_ref() {
    folder=$(hub_folder "$1")
    mkdir -p "$(dirname "$folder/refs/$2")"
    printf %s "$3" >"$folder/refs/$2"
}

# hub_add_all REPOSITORY COMMIT DIRECTORY
hub_add_all() {
    for file in "$3"/*; do hub_add "$1" "$2" "$(basename "$file")" "$file"; done
}
