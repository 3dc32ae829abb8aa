/*
 * Arguments of operations that have several, by name: `sink=4,recent=256`.
 */
#ifndef QKV_RUN_OP_ARGUMENTS_H
#define QKV_RUN_OP_ARGUMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

/* One argument: a whole number, or one of some words. */
typedef struct qkv_argument {
    const char *name;
    int64_t *value; /* keeps what it has where the argument is not given */
    int64_t least, most;
    const char *words; /* "avg|max": the value is the number of the word; NULL: a number */
    int is_needed;
} qkv_argument;

/* Reads all of the text. A message says what is wrong without naming the edit. */
int qkv_arguments_read(const char *text, const qkv_argument *list, size_t n, qkv_error *err);

#endif
