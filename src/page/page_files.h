/*
 * The files of the explorer's page, compiled in: what lies in src/server/page/.
 *
 *     const char *bytes = NULL;
 *     size_t n_bytes = 0;
 *     if (qkv_page_file("style.css", &bytes, &n_bytes)) ...
 *
 * The server hands them out, and offline figures carry them. cmake/embed.cmake makes the table.
 */
#ifndef QKV_PAGE_PAGE_FILES_H
#define QKV_PAGE_PAGE_FILES_H

#include <stddef.h>

typedef struct qkv_page_entry {
    const char *name;
    const char *bytes; /* with a NUL after them */
    size_t n_bytes;
} qkv_page_entry;

/* Sorted by name; ends with a name that is NULL. */
extern const qkv_page_entry qkv_page_table[];

/* Fills both and returns 1, or returns 0 where no file has that name. */
int qkv_page_file(const char *name, const char **bytes, size_t *n_bytes);
/* The names one after the other; NULL past the end. */
const char *qkv_page_file_name(size_t index);

#endif
