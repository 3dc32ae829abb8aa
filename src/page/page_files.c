/*
 * Lookups in the table of the page's files. A name is compared as a whole and never taken apart, so
 * that nothing in it can reach outside the table.
 */
#include "page/page_files.h"

#include <string.h>

int qkv_page_file(const char *name, const char **bytes, size_t *n_bytes) {
    for (const qkv_page_entry *entry = qkv_page_table; name != NULL && entry->name; entry++) {
        if (strcmp(entry->name, name) == 0) {
            *bytes = entry->bytes;
            *n_bytes = entry->n_bytes;
            return 1;
        }
    }
    return 0;
}

const char *qkv_page_file_name(size_t index) {
    const qkv_page_entry *entry = qkv_page_table;
    while (index-- > 0 && entry->name) {
        entry++;
    }
    return entry->name;
}
