#include "base/edit_words.h"

#include <string.h>

#include "base/text.h"

int qkv_edits_say(const char *edits, const char *operation, const char *argument) {
    const size_t length = strlen(argument);
    while ((edits = strstr(edits, operation))) {
        edits += strlen(operation);
        const char end = strncmp(edits, argument, length) == 0 ? edits[length] : '+';
        if (end == '\0' || end == ',' || qkv_is_space(end)) return 1;
    }
    return 0;
}

/* ---- names of vectors ---- */

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
