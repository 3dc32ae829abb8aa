/*
 * Reductions of attention maps, computed while the rows go by: a picture or a profile of a map that
 * is never in memory as a whole.
 */
#ifndef QKV_RUN_REDUCE_H
#define QKV_RUN_REDUCE_H

#include <stdint.h>

#include "qkv/session.h"

/* Cells of one head's reduction of a T × T map, and its shape. */
int64_t qkv_reduction_size(qkv_reduction kind, int64_t side, int64_t n_tokens);
/* 1 for a profile of T values, 2 for a picture. */
int qkv_reduction_dims(qkv_reduction kind);
/* Side of a pooled picture: no larger than the map. */
int64_t qkv_reduction_side(int64_t side, int64_t n_tokens);

/* Before the first row: sums start with 0, the largest of a cell with less than any weight. */
void qkv_reduce_start(qkv_reduction kind, int64_t side, int64_t n_tokens, double *out);
/* Adds `n_rows` rows of one head, the first of them query `first_row`; `keys` values each, what
 * lies beyond them is 0. */
void qkv_reduce_rows(qkv_reduction kind, int64_t side, int64_t n_tokens, const float *rows,
                     int64_t first_row, int64_t n_rows, int64_t keys, double *out);
/* Once all rows were added: sums become means. */
void qkv_reduce_finish(qkv_reduction kind, int64_t side, int64_t n_tokens, double *out);

#endif
