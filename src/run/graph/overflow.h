/*
 * Numbers that become too large for F32 where no NaN or Inf would tell of it later: in an edit, and
 * in a norm, whose result is 0 when the squares of its input overflow.
 */
#ifndef QKV_RUN_OVERFLOW_H
#define QKV_RUN_OVERFLOW_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/fail.h"
#include "ggml.h"

struct qkv_graph;

/* One operation of a graph that is looked at; threads write what they meet. */
typedef struct qkv_check {
    const struct qkv_graph *graph;
    const char *what; /* the site of an edit, or the weight of a norm */
    int32_t layer;    /* n_layer and -1: after and before all layers */
    int32_t is_edit;
    int32_t is_last;       /* after the last attention, where tokens do not meet any more */
    int64_t n_rows;        /* of one variant */
    const int32_t *owners; /* the variants that parts of n_rows belong to; NULL: one by one */
    _Atomic int64_t first; /* row of the batch that overflows; INT64_MAX: none */
} qkv_check;

/* A check that the graph owns; NULL where memory has run out, which the graph remembers. */
qkv_check *qkv_check_new(struct qkv_graph *g, const char *what, int32_t layer);
void qkv_check_note(qkv_check *check, int64_t row);

/* The input of a norm, passed through as it is. */
struct ggml_tensor *qkv_check_norm(struct qkv_graph *g, const struct ggml_tensor *weight,
                                   struct ggml_tensor *x);

/* The first operation of the graph that overflowed, and for which of its members; NULL: none. */
const qkv_check *qkv_check_find(const struct qkv_graph *g, int64_t *member, int64_t *token);

/* The error of a check that was found; `who` has the token. */
int qkv_check_fail(const qkv_check *check, const char *who, int64_t token, qkv_error *err);

#endif
