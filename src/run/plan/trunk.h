/*
 * The trunk: what the baseline of one prompt looks like at the layers where variants fork.
 *
 * A session keeps it from one plan to the next, so that a new edit of the same prompt starts from
 * it instead of from the tokens. It holds for one sequence of tokens, and for one size of the blocks
 * of queries, which products are rounded by; it is dropped with them.
 */
#ifndef QKV_RUN_TRUNK_H
#define QKV_RUN_TRUNK_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"
#include "model/model.h"

/* One layer's input, and its heads before any edit; NULL where not kept. Layer n_layer has resid
 * only. */
typedef struct qkv_trunk_layer {
    float *resid;      /* [D, T] */
    float *q, *k, *v;  /* [d, H, T], [d, G, T] twice; all three or none */
    uint64_t last_use; /* counts plans, for choosing what to drop */
} qkv_trunk_layer;

typedef struct qkv_trunk {
    int32_t *tokens;
    int64_t n_tokens, block_rows;
    qkv_trunk_layer *layers; /* n_layer + 1 */
    int32_t n_layer;
    uint64_t clock;
} qkv_trunk;

/* Is it the trunk of these tokens, in blocks of so many queries? */
int qkv_trunk_holds(const qkv_trunk *trunk, const int32_t *tokens, int64_t n_tokens,
                    int64_t block_rows);
/* Makes the trunk that of these tokens: keeps it when it already is, empties it otherwise. */
int qkv_trunk_select(qkv_trunk *trunk, const qkv_model *model, const int32_t *tokens,
                     int64_t n_tokens, int64_t block_rows, qkv_error *err);
void qkv_trunk_release(qkv_trunk *trunk);

/* Marks of the prepared layers (n_layer + 1) as many as fit into `budget` bytes: all of them, else
 * every second, third and so on from the last one down. What is left out is computed again from the
 * nearest layer below it. */
void qkv_trunk_mark(const qkv_model *model, int64_t n_tokens, const uint8_t *prepared,
                    size_t budget, uint8_t *marked);

/* Drops the layers used longest ago until the rest fits into `budget` bytes; those of the current
 * plan stay. */
void qkv_trunk_trim(qkv_trunk *trunk, const qkv_model *model, size_t budget);
size_t qkv_trunk_size(const qkv_trunk *trunk, const qkv_model *model);

#endif
