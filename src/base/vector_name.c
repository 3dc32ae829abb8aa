#include "base/vector_name.h"

#include <string.h>

const char *qkv_vector_name_next(const char *edits, size_t *length) {
    const char *at = strstr(edits, ":@");
    if (!at) return NULL;
    *length = strcspn(at + 2, ", \t\r\n");
    return at + 2;
}

/* How much of a name is folders: up to the last slash of the file's part. */
static size_t folders_of(const char *name, size_t length) {
    size_t folders = 0;
    for (size_t i = 0; i < length && name[i] != '#'; i++) {
        if (name[i] == '/') folders = i + 1;
    }
    return folders;
}

void qkv_vector_names_shorten(char *edits) {
    size_t length = 0;
    for (char *at = (char *)qkv_vector_name_next(edits, &length); at;
         at = (char *)qkv_vector_name_next(at, &length)) {
        const size_t folders = folders_of(at, length);
        memmove(at, at + folders, strlen(at + folders) + 1);
    }
}
