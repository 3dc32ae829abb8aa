/* Words in the text of edits, for callers that do not parse them. */
#ifndef QKV_BASE_EDIT_WORDS_H
#define QKV_BASE_EDIT_WORDS_H

#include <stddef.h>

/* Does an edit in the text have this operation and argument, "patch:" and "clean"? */
int qkv_edits_say(const char *edits, const char *operation, const char *argument);

/*
 * Names of vectors: what stands after ":@", up to a comma, a space or the end. One that is taken from a file is
 * FILE#TENSOR, and is known by the file's last part.
 */

/* The next name from `edits` on, and its length; NULL: there is none. */
const char *qkv_vector_name_next(const char *edits, size_t *length);

/* Takes the folders out of the names, in place. */
void qkv_vector_names_shorten(char *edits);

#endif
