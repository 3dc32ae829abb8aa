/*
 * One pass through (a part of) the network as a ggml graph, and the seam at which it can be read and edited.
 *
 * A pass runs layers [from, ...] for a batch of B variants of one prompt. Tensors that differ between variants carry the
 * batch outermost. Only what a kept tensor depends on enters the graph, so nothing else is computed.
 *
 * Letters in shape comments: D width, H query heads, G key/value heads, d head width, T tokens, B variants, F feed-forward,
 * V vocabulary; innermost first, as ggml has it.
 */
#ifndef QKV_RUN_GRAPH_H
#define QKV_RUN_GRAPH_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "ggml.h"
#include "model/model.h"
#include "run/plan.h"

typedef struct qkv_tap_op qkv_tap_op;

/* One variant of a pass. */
typedef struct qkv_member {
    const qkv_variant *variant;
    _Atomic uint64_t *changed; /* per edit of the variant */
} qkv_member;

/* The tensors of the prompts that edits patch from: source × (n_layer + 1) × sites, NULL where none is needed. */
typedef struct qkv_patches {
    float **tensors;
    size_t n_tensors;
} qkv_patches;

/* A tensor that the pass keeps; valid until the next pass of the session. */
typedef struct qkv_kept {
    qkv_site site;
    int32_t layer;
    struct ggml_tensor *tensor;
} qkv_kept;

typedef struct qkv_graph {
    const qkv_model *model;
    int64_t n_tokens;          /* T */
    int64_t n_batch;           /* B */
    const qkv_member *members; /* B of them */
    const qkv_patches *patches;
    int32_t from;        /* first layer; n_layer: the output only */
    const uint8_t *keep; /* (n_layer + 1) × sites: what the pass has to keep */
    int n_threads;

    struct ggml_context *ctx;
    struct ggml_cgraph *cgraph;
    struct ggml_tensor *in_tokens;   /* I32 [T] */
    struct ggml_tensor *in_resid;    /* F32 [D, T], when from > 0 */
    struct ggml_tensor *in_position; /* I32 [T] */
    struct ggml_tensor *in_mask;     /* F32 [T, T]: 0 where a query may look, -inf elsewhere */
    struct ggml_tensor *in_divisors; /* F32 [rope_dims/2] */

    qkv_kept *kept;
    size_t n_kept, kept_capacity;
    qkv_tap_op **taps;
    size_t n_taps, taps_capacity;
    int out_of_memory;
} qkv_graph;

/* The seam. Returns its input when the pass neither edits nor keeps it; otherwise appends the edits of every variant in the
 * batch, and keeps the result. A head that an edit splits off its group comes back with H instead of G heads. */
struct ggml_tensor *qkv_tap(qkv_graph *g, qkv_site site, int32_t il, struct ggml_tensor *x);

/* forward.c: builds the graph; how many nodes one can have. */
size_t qkv_graph_max_nodes(const qkv_model *model);
int qkv_graph_build(qkv_graph *g, qkv_error *err);
void qkv_graph_release(qkv_graph *g);

/* Keeps a tensor as (site, il), without edits. */
void qkv_graph_keep(qkv_graph *g, qkv_site site, int32_t il, struct ggml_tensor *x);
int qkv_graph_keeps(const qkv_graph *g, qkv_site site, int32_t il);
float *qkv_patches_get(const qkv_patches *patches, const qkv_model *model, size_t source,
                       qkv_site site, int32_t layer);

#endif
