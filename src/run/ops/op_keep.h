/*
 * keep: the rules by which caches of keys and values are kept small, as masks of scores. Row by row, in
 * the order of the text, and for every query head alone.
 *
 *     keep:h2o,budget=B,recent=R[,prompt=P,rule=paper|lm_eval]
 *         A query sees at most B keys: the R most recent ones, its own included, and of the others those
 *         that got most weight so far. A key that was dropped does not come back. Weights are those after
 *         dropping. Queries of the prompt (P = 0 unless given) drop nothing, but their weights count.
 *         rule=lm_eval: B - R + 1 keys are heavy, the query's own among them. All keys compete for that set
 *         from their first row on, by the weights that they would have if nothing were dropped; a query sees
 *         it and the R most recent keys.
 *     keep:snapkv,budget=B[,window=W,kernel=K,pool=avg|max,prompt=P]
 *         The last W queries of the prompt vote: the weights that they give to the keys before them are
 *         summed and pooled over K neighbours. Queries after the prompt see the B - W keys with most
 *         votes, these W, and all that came later. A prompt of fewer than B tokens is left alone.
 *
 * What a head remembers is a sum of weights and a mark for each key: rows must come in order, and one
 * thread has all of a head's.
 */
#ifndef QKV_RUN_OP_KEEP_H
#define QKV_RUN_OP_KEEP_H

#include <stdint.h>

#include "base/fail.h"

typedef enum qkv_keep_method { QKV_METHOD_H2O, QKV_METHOD_SNAPKV } qkv_keep_method;

typedef struct qkv_keep_rule {
    qkv_keep_method method;
    int64_t budget, recent, window, kernel, pool;
    int64_t evaluates; /* of H2O: the rule of the authors' code for evaluation */
    int64_t prompt;    /* tokens that are processed in full; -1: the text's own prompt */
} qkv_keep_rule;

/* What the heads of one layer remember of the rows so far. */
typedef struct qkv_keep_state {
    int64_t n;      /* tokens that fit */
    double *weight; /* H × n: how much each key got */
    uint8_t *gone;  /* H × n: dropped */
} qkv_keep_state;

int qkv_keep_state_new(qkv_keep_state *state, int64_t n_heads, int64_t n_tokens, qkv_error *err);
void qkv_keep_state_release(qkv_keep_state *state);

#endif
