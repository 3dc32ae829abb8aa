/*
 * Names of vectors in the text of edits: what stands after ":@", up to a comma, a space or the end.
 * One that is taken from a file is FILE#TENSOR, and is known by the file's last part.
 */
#ifndef QKV_BASE_VECTOR_NAME_H
#define QKV_BASE_VECTOR_NAME_H

#include <stddef.h>

/* The next name from `edits` on, and its length; NULL: there is none. */
const char *qkv_vector_name_next(const char *edits, size_t *length);

/* Takes the folders out of the names, in place. */
void qkv_vector_names_shorten(char *edits);

#endif
