/*
 * Keys and values of the tokens that a text has so far, for one variant.
 *
 * They are kept as attention multiplies them: packed (kernel/product.h), keys after RoPE and after
 * all edits. A layer whose queries see a window keeps the window and no more: what no query can see
 * any longer is dropped, some hundred tokens at a time.
 */
#ifndef QKV_RUN_KV_CACHE_H
#define QKV_RUN_KV_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"
#include "model/model.h"
#include "run/ops/op_keep.h"

/* One layer. Heads are G, or H where an edit of the variant gives query heads keys or values of their
 * own. */
typedef struct qkv_kv_layer {
    float *k, *v; /* NULL: not there, or another variant's are used */
    int32_t k_heads, v_heads;
    int64_t k_width, v_width; /* of one head */
    int64_t capacity;         /* tokens that fit, a multiple of QKV_PIECE */
    int64_t first;            /* number of the first token that is still there, another multiple */
    int bounded;              /* tokens before the window are dropped */
    int64_t keep_tokens; /* of a layer whose heads remember what keys got: as many; 0: none do */
    int32_t q_heads;     /* that remember */
    qkv_keep_state keep;
} qkv_kv_layer;

typedef struct qkv_kv_cache {
    qkv_kv_layer *layers; /* n_layer */
} qkv_kv_cache;

/* Tokens that a layer has to hold for a text of n_tokens, of which at most `chunk` come at a time:
 * all, or as far as its window reaches back. */
int64_t qkv_kv_capacity(int64_t n_tokens, int64_t window, int64_t chunk);

size_t qkv_kv_layer_size(const qkv_kv_layer *layer); /* bytes */
int qkv_kv_layer_allocate(qkv_kv_layer *layer, qkv_error *err);
void qkv_kv_layer_release(qkv_kv_layer *layer);
/* Heads of `from` are those of `to`, or shared by them. `to` has memory. */
void qkv_kv_layer_copy(qkv_kv_layer *to, const qkv_kv_layer *from);

/* Makes room for tokens [position, position + n), of which none sees tokens before `seen`. */
void qkv_kv_layer_advance(qkv_kv_layer *layer, int64_t seen, int64_t position, int64_t n);

/* One head. */
float *qkv_kv_keys(const qkv_kv_layer *layer, int64_t head);
float *qkv_kv_values(const qkv_kv_layer *layer, int64_t head);

#endif
