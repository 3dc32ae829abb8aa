/*
 * The pieces that the forward pass is made of: products, norms, activations; and the two blocks of
 * a layer. They add nodes to the graph and read from the model what they need.
 */
#ifndef QKV_RUN_BUILD_H
#define QKV_RUN_BUILD_H

#include "run/graph/graph.h"
#include "run/graph/product.h"

#define LAYER(g, il, slot) ((g)->model->layers[il].w[QKV_LAYER_##slot])
#define MODEL(g, slot) ((g)->model->w[QKV_MODEL_##slot])

/* A tensor that is filled in before the graph is computed. */
struct ggml_tensor *qkv_input(qkv_graph *g, enum ggml_type type, int64_t n0, int64_t n1,
                              int64_t n2);
/* The product with a weight, and a bias, which may be NULL. */
struct ggml_tensor *qkv_linear(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *bias,
                               struct ggml_tensor *x);
/* The family's norm over the innermost axis; the input itself where there is no weight. */
struct ggml_tensor *qkv_norm(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *bias,
                             struct ggml_tensor *x);
/* x times a factor; the input itself for 1. */
struct ggml_tensor *qkv_scaled(qkv_graph *g, struct ggml_tensor *x, float factor);
/* c tanh(x/c); the input itself for c = 0. */
/* q, k or v within the limit that the model sets, if any. */
struct ggml_tensor *qkv_clamped(qkv_graph *g, struct ggml_tensor *heads);
struct ggml_tensor *qkv_softcap(qkv_graph *g, struct ggml_tensor *x, float c);
/* The inputs of a pass are the same for all its variants. */
struct ggml_tensor *qkv_for_each_variant(qkv_graph *g, struct ggml_tensor *x);

/* forward.c: of [n, T, B], the tokens whose logits are wanted: [n, rows, B]. */
struct ggml_tensor *qkv_wanted_rows(qkv_graph *g, struct ggml_tensor *x);
/* own_embedding.c: the rows of the embedding matrix, scaled, [D, T, texts]; and what a layer's own
 * embeddings of the tokens add to its output x, [D, T, B]. */
struct ggml_tensor *qkv_token_embeddings(qkv_graph *g);
struct ggml_tensor *qkv_own_embedding(qkv_graph *g, int32_t il, struct ggml_tensor *x);

/* rotate.c: queries or keys [d, heads, T, B], turned as the layer turns them; as they are where it does not. */
struct ggml_tensor *qkv_rotate(qkv_graph *g, int32_t il, struct ggml_tensor *x,
                               struct ggml_tensor *position);
/* The same where it belongs before the norm of heads, that is before any edit; after it, in other families. */
struct ggml_tensor *qkv_rotate_before_norm(qkv_graph *g, qkv_site in, int32_t il,
                                           struct ggml_tensor *x);
struct ggml_tensor *qkv_rotate_after_norm(qkv_graph *g, int32_t il, struct ggml_tensor *x,
                                          struct ggml_tensor *position);
/* Queries, multiplied by their temperatures, where the layer has any. */
struct ggml_tensor *qkv_tempered(qkv_graph *g, int32_t il, struct ggml_tensor *q);
/* attention.c: the layer's input x as attention reads it, after the norm if there is one. */
struct ggml_tensor *qkv_attention_input(qkv_graph *g, int32_t il, struct ggml_tensor *x);
/* z [H·d, T, B] of the layer's input [D, T, B]. NULL where the pass ends with the maps. */
struct ggml_tensor *qkv_attention(qkv_graph *g, int32_t il, struct ggml_tensor *x);
/* Which experts the tokens go to, and what each counts: chosen [k, T·B], share [1, k, T·B]. */
typedef struct qkv_route {
    struct ggml_tensor *chosen, *share;
} qkv_route;

/* router.c: of the router's scores [E, T·B]; bias [E] serves the choice alone, NULL: there is none. */
qkv_route qkv_route_tokens(qkv_graph *g, struct ggml_tensor *scores, struct ggml_tensor *bias);
/* feed_forward.c: the model's activation. */
struct ggml_tensor *qkv_activated(qkv_graph *g, int32_t il, struct ggml_tensor *x);
/* Of the normalised input [D, T, B]; plain, gated, or experts. */
struct ggml_tensor *qkv_feed_forward(qkv_graph *g, int32_t il, struct ggml_tensor *x);

/*
 * Edits by query of keys and values (quant:…,per=query): a query sees those of the first tokens edited, and the
 * others as they are.
 *
 * Products are computed with both, and each cell is taken from the one that its query sees. Variants and heads
 * without such edits have the bits that they have without.
 */

/* Scores of a block, [keys, rows, heads, B] twice. */
struct ggml_tensor *qkv_by_query_scores(qkv_graph *g, int32_t il, struct ggml_tensor *edited,
                                        struct ggml_tensor *plain, const qkv_query_block *block);
/* The pattern of a block times the values: [d, H, rows, B]. */
struct ggml_tensor *qkv_by_query_values(qkv_graph *g, int32_t il, struct ggml_tensor *pattern,
                                        qkv_two_ways values, const qkv_query_block *block);

/*
 * Positions within a small cache (mask:…,positions=cache).
 *
 * A query that stands further ahead in the text than the cache has places is turned back by RoPE to the
 * last of these places. Its scores of the first keys, which stay at their own places, are then those of a
 * cache that counts within itself; those of recent keys, which move with it, are the same as in the text.
 */

/* q [d, H, T, B] after RoPE, with the queries of such edits turned back; as it is where a bias of the scores
 * stands for positions; NULL where the layer has no such edit, or neither. */
struct ggml_tensor *qkv_queries_in_cache(qkv_graph *g, int32_t il, struct ggml_tensor *q);
/* How far a query is ahead in the text of its place in the cache. */
int64_t qkv_query_ahead(const qkv_graph *g, int64_t b, int32_t il, int32_t head, int64_t query);

/* score_bias.c: the scores of a block [keys, rows, heads, B] with the bias of ALiBi, slope · (key - query),
 * where the model has one. `in_cache`: of queries at their places in a small cache. */
struct ggml_tensor *qkv_score_bias(qkv_graph *g, int32_t il, struct ggml_tensor *scores,
                                   const qkv_query_block *block, int in_cache);
/* attention.c: the layer's mask, one of QKV_MASK_*. */
int qkv_mask_kind(const qkv_graph *g, int32_t il);

#endif
