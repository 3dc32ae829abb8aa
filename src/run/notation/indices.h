/*
 * Lists of tokens and channels in the notation: 5, 2:8, 1:, :4, -1, joined by commas; and pairs of two such
 * lists, 2:5<-4:7.
 *
 * Messages say what is wrong without naming the text.
 */
#ifndef QKV_RUN_INDICES_H
#define QKV_RUN_INDICES_H

#include <stdint.h>

#include "base/fail.h"

/* What indices count: so many tokens of a prompt, or channels of a site. */
typedef struct qkv_axis {
    const char *one;   /* "token" */
    const char *whole; /* what has them */
    int64_t n;
    int64_t end; /* negative numbers count from here back */
    char open, close;
} qkv_axis;

/* The index or range at *at, which is moved after it: first <= i < end. */
int qkv_indices_take(const char **at, const qkv_axis *axis, int64_t *first, int64_t *end,
                     qkv_error *err);

/* LIST<-LIST, up to ']': in order, each index of the left list gets the one of the right list. *from has
 * an entry for each index of `own`, -1 where the left list does not name it; free it with free. */
int qkv_indices_pair(int64_t **from, const char *text, const qkv_axis *own, const qkv_axis *other,
                     qkv_error *err);

#endif
