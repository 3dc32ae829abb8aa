/*
 * One pass through (a part of) the network as a ggml graph, and the seam at which it can be read
 * and edited.
 *
 * A pass runs layers [from, ...] for a batch of B variants of one prompt. Tensors that differ
 * between variants carry the batch outermost. Only what a kept tensor depends on enters the graph,
 * so nothing else is computed.
 *
 * Letters in shape comments: D width, H query heads, G key/value heads, d head width, T tokens, B
 * variants, F feed-forward, V vocabulary; innermost first, as ggml has it.
 */
#ifndef QKV_RUN_GRAPH_H
#define QKV_RUN_GRAPH_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/steps.h"
#include "ggml.h"
#include "model/model.h"
#include "run/graph/kv_cache.h"
#include "run/graph/overflow.h"
#include "run/observer.h"
#include "run/plan/plan.h"

typedef struct qkv_tap_op qkv_tap_op;
typedef struct qkv_product_op qkv_product_op;
struct qkv_head_copies;

/* One variant of a pass. */
typedef struct qkv_member {
    const qkv_variant *variant;
    _Atomic uint64_t *changed; /* per edit of the variant */
    int needs_all_tokens;      /* after the last attention, too */
} qkv_member;

/* The tensors of the prompts that edits patch from: source × (n_layer + 1) × sites, NULL where none
 * is needed; those of the prompt itself, unedited, that edits freeze; and means over the set of
 * prompts. */
typedef struct qkv_patches {
    float **tensors;
    size_t n_tensors;
    float **frozen; /* (n_layer + 1) × sites */
    size_t n_frozen;
    float **means; /* kind of mean × (n_layer + 1) × sites */
    size_t n_means;
} qkv_patches;

/* A tensor that the pass keeps; valid until the next pass of the session. */
typedef struct qkv_kept {
    qkv_site site;
    int32_t layer;
    struct ggml_tensor *tensor;
    const struct qkv_head_copies *copies; /* of q_in, k_in and v_in, see head_input.h; or NULL */
} qkv_kept;

/* What a pass has to keep of a site: the tensor, or reductions of it; or rows to be shown only. */
enum { QKV_KEEP_WHOLE = 1, QKV_KEEP_REDUCED = 2, QKV_KEEP_OBSERVED = 4 };

/* A reduction that a pass computes: B × H times the size of one head's. */
typedef struct qkv_accumulator {
    int32_t layer;
    qkv_reduction kind;
    int64_t side;
    double *data; /* sums over thousands of rows lose too much in single precision */
} qkv_accumulator;

/* Keys or values, packed: with edits by query, and without; the latter NULL where there are none. */
typedef struct qkv_two_ways {
    struct ggml_tensor *edited, *plain;
} qkv_two_ways;

/* What the queries of a layer look at; in a step, caches stand for it. */
typedef struct qkv_seen {
    qkv_two_ways keys, values;
} qkv_seen;

/* What a pass starts with. */
typedef enum qkv_start {
    QKV_START_TOKENS, /* layer 0 */
    QKV_START_RESID,  /* the residual stream at the input of a layer; of n_layer: the output only */
    QKV_START_HEADS   /* that, and the unedited q, k and v of the layer */
} qkv_start;

/* Masks of layers that see everything, and of those with a window; the last one of those with a window
 * whose cache holds everything nevertheless. */
enum { QKV_MASK_FULL, QKV_MASK_WINDOW, QKV_MASK_WINDOW_WIDE, QKV_MASK_COUNT };

/* A step of a text that grows: the pass has the new tokens only, and attention sees the keys and
 * values that the steps before have left in caches. Members of the batch have their own texts, or have
 * the first member's up to the layer where their edits begin: they join the batch there. */
typedef struct qkv_step {
    int64_t position;     /* number of the first new token */
    int64_t n_texts;      /* members with tokens of their own; the others come after them */
    const int32_t *joins; /* B, ascending: the layer at which a member joins; n_layer: the output */
    qkv_kv_layer **caches; /* n_layer × B; NULL before a member has joined */
    int64_t n_prompt;      /* tokens of the prompts that edits patch from */
    int32_t is_long;       /* RoPE as for long prompts */
    int32_t one_new;       /* one token after the prompt: its products are dots (kernel/dot.c) */
    int64_t first[QKV_MASK_COUNT], keys[QKV_MASK_COUNT]; /* that attention looks at */
} qkv_step;

typedef struct qkv_graph {
    /* What to build; filled in by the caller. */
    const qkv_model *model;
    int64_t n_tokens; /* T */
    /* Tokens of the prompt that come before these and that no member of the batch changes: they are left
     * out, and attention has the baseline's keys and values of them. In one block of queries only. */
    int64_t n_before;
    int64_t n_batch;           /* B; in a step, of the layer that is being built */
    const qkv_member *members; /* B of them */
    const qkv_step *step;      /* NULL: a pass over the whole prompt */
    int64_t n_members;         /* B after the last layer; set when the graph is built */
    const qkv_patches *patches;
    qkv_start start;
    int32_t from;                  /* first layer */
    const uint8_t *keep;           /* (n_layer + 1) × sites: QKV_KEEP_* */
    qkv_accumulator *accumulators; /* for the reductions, with their memory */
    size_t n_accumulators;
    qkv_watch watch; /* of QKV_KEEP_OBSERVED */
    /* Query heads that the attention of layer `from` computes, in a pass that ends there; count 0:
     * all. Whole groups, or heads of one group. */
    int32_t first_head, n_heads;
    const uint8_t *logit_rows; /* T bytes: tokens that go to the output; NULL: all */
    const uint8_t *seen_rows;  /* of which something is captured, where an edit needs them all */
    int64_t block_rows;        /* queries that attention takes at a time */
    int in_order;              /* from the first block to the last: edits remember earlier rows */
    int is_long;               /* RoPE as for long prompts, also where the tokens are few */
    int n_threads;
    qkv_steps *steps; /* that may stop the pass; may be NULL */

    struct ggml_context *ctx;
    struct ggml_cgraph *cgraph;
    struct ggml_tensor *in_tokens;      /* I32 [T] */
    struct ggml_tensor *embedded;       /* [D, T, texts], as they come out of the matrix, scaled */
    struct ggml_tensor *own_embeddings; /* [p, n_layer, T, texts], of models that have them */
    qkv_seen *seen;               /* n_layer: keys and values of the layers that have their own */
    struct ggml_tensor *in_resid; /* F32 [D, T] */
    struct ggml_tensor *in_q, *in_k, *in_v;          /* F32 [d, H, T], [d, G, T] twice */
    struct ggml_tensor *in_position;                 /* I32 [T] */
    struct ggml_tensor *in_position_before;          /* I32 [n_before] */
    struct ggml_tensor **in_before;                  /* n_layer × k and v: F32 [d, G, n_before] */
    struct ggml_tensor *in_token_type;               /* I32 [T] */
    struct ggml_tensor *in_mask[QKV_MASK_COUNT];     /* F32, see qkv_mask_fill */
    struct ggml_tensor *in_divisors[QKV_ROPE_COUNT]; /* F32 [pairs that turn] */
    struct ggml_tensor *in_rows;    /* I32: columns of [D, T·B] that go to the output */
    struct ggml_tensor *in_scratch; /* F32: what threads need for products with weights */
    struct ggml_tensor *in_nothing; /* F32 [1]: the result of operations that have none */

    qkv_kept *kept;
    size_t n_kept, kept_capacity;
    qkv_tap_op **taps;
    size_t n_taps, taps_capacity;
    qkv_product_op **products;
    size_t n_products, products_capacity;
    struct ggml_tensor *packed_from, *packed; /* activations that were packed last */
    qkv_check **checks;
    size_t n_checks, checks_capacity;
    struct qkv_head_copies **copies;
    size_t n_copies, copies_capacity;
    /* What is being built belongs to these members, one by one; NULL: to the batch. */
    const int32_t *row_owners;
    int64_t n_row_owners;
    int32_t at_layer;       /* that is being built: -1 before all layers, n_layer after them */
    int behind_attention;   /* of the last layer: what is being built */
    qkv_keep_state *keeps;  /* B, of a pass with such edits: one layer after the other uses them */
    qkv_error custom_error; /* of the first function of the caller's that failed */
    int out_of_memory;
    _Atomic int ran_short; /* of memory, while it was computed */
    uint64_t allocation;   /* which one of all allocations of graphs was its own */
} qkv_graph;

/* A part of a map: its first head and row. */
typedef struct qkv_part {
    int32_t first_head;
    int64_t first_row;
} qkv_part;

/* The seam. Returns its input when the pass neither edits nor keeps it; otherwise appends the edits
 * of every variant in the batch, and keeps the result. A head that an edit splits off its group
 * comes back with H instead of G heads. */
struct ggml_tensor *qkv_tap(qkv_graph *g, qkv_site site, int32_t il, struct ggml_tensor *x);
/* The same for a block of a map, [T, rows, heads, B]. */
struct ggml_tensor *qkv_tap_part(qkv_graph *g, qkv_site site, int32_t il, struct ggml_tensor *x,
                                 qkv_part part);
/* The copies of a layer's input x [D, T, B] that some heads read, edited: [D, T, n]. */
struct ggml_tensor *qkv_tap_copies(qkv_graph *g, const struct qkv_head_copies *copies,
                                   struct ggml_tensor *x);
/* [d, G, T, B] to [d, H, T, B]: every query head gets a copy of its key/value head. */
struct ggml_tensor *qkv_split_groups(qkv_graph *g, int32_t il, struct ggml_tensor *x);

/* The same of scores, where some queries stand elsewhere in a small cache (cache_positions.c): `moved` are
 * their scores there. May be NULL. */
struct ggml_tensor *qkv_tap_scores(qkv_graph *g, int32_t il, struct ggml_tensor *x,
                                   struct ggml_tensor *moved, qkv_part part);
/* The same of k_rot and v, which some queries see without edits by query (by_query.c): *plain is the tensor
 * without them, NULL where there are none. */
struct ggml_tensor *qkv_tap_shared(qkv_graph *g, qkv_site site, int32_t il, struct ggml_tensor *x,
                                   struct ggml_tensor **plain);

/* Does any variant of the batch have an edit by query of the site in this layer? */
int qkv_graph_has_by_query(const qkv_graph *g, qkv_site site, int32_t il);
/* Does any variant of the batch edit the site in this layer? */
int qkv_graph_edits(const qkv_graph *g, qkv_site site, int32_t il);

/* forward.c: builds the graph; how many nodes it can have. */
size_t qkv_graph_max_nodes(const qkv_graph *g);
int qkv_graph_build(qkv_graph *g, qkv_error *err);

/* What computing the graph takes. */
typedef struct qkv_cost {
    uint64_t n_matmul;    /* products of a weight with activations */
    uint64_t n_attention; /* products inside attention, one per map or block of it */
    double flop;
    double bytes; /* of weights read */
} qkv_cost;

qkv_cost qkv_graph_cost(const qkv_graph *g);
/* Before a graph is computed once more. */
void qkv_graph_rewind(qkv_graph *g);
void qkv_graph_release(qkv_graph *g);

/* Keeps a tensor as (site, il), without edits. */
void qkv_graph_keep(qkv_graph *g, qkv_site site, int32_t il, struct ggml_tensor *x);
int qkv_graph_keeps(const qkv_graph *g, qkv_site site, int32_t il);
/* Heads of a site's tensor as the graph has it, 0 for a site without heads. */
int32_t qkv_kept_heads(qkv_site site, const struct ggml_tensor *x);
void qkv_patches_release(qkv_patches *patches);

/* The mask of a block of queries from row r on is a window into one band: element (i, c) of the
 * band stands for query r + i and key c - (n_tokens - r). Shape [2 n_tokens, block_rows], so that
 * all keys are in the window of every block; of a single block, [n_tokens, n_tokens]. */
void qkv_mask_fill(const qkv_graph *g, float *band, int32_t window);
/* Of a step: one of QKV_MASK_*, [keys, T]. */
void qkv_mask_fill_step(const qkv_graph *g, float *mask, int kind);

#endif
