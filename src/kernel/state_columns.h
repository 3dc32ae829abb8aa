/*
 * States of linear mixers: one head's matrix, which every token decays, writes to and reads from.
 *
 * Columns of a state do not see each other. A few of them at a time stay in the cache of the processor while
 * all tokens pass; no matrix of tokens by tokens is made, and a token costs the same wherever a text is cut.
 * The bits of a column depend neither on the columns beside it nor on the cut.
 */
#ifndef QKV_KERNEL_STATE_COLUMNS_H
#define QKV_KERNEL_STATE_COLUMNS_H

#include <stdint.h>

/* Columns that are taken at a time. */
enum { QKV_STATE_COLUMNS = 32 };

/* A vector per token, so many floats apart. */
typedef struct qkv_token_rows {
    const float *data;
    int64_t stride;
} qkv_token_rows;

/* What one head does with columns [0, n_columns) of its state. */
typedef struct qkv_state_pass {
    int64_t n_tokens, width;    /* rows of the state */
    int64_t n_columns;          /* at most QKV_STATE_COLUMNS */
    qkv_token_rows read, write; /* `width` numbers per token: q and k */
    qkv_token_rows value;       /* `n_columns` numbers per token: v */
    qkv_token_rows decay, step; /* one number per token */
    float *state;               /* width rows of QKV_STATE_COLUMNS */
    float *out;
    int64_t out_stride;
} qkv_state_pass;

/* The gated delta rule. S becomes decay S, then gets step (v - k·S) at k; out = q·S. */
void qkv_delta_pass(const qkv_state_pass *p);

#endif
