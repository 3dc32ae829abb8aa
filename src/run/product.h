/*
 * Products of weights with activations, as operations of the graph (kernel/product.h).
 *
 * Columns of all tokens and variants go through one product: how many there are does not show in
 * the results.
 */
#ifndef QKV_RUN_PRODUCT_H
#define QKV_RUN_PRODUCT_H

#include "run/graph.h"

/* w [n, m] times x [n, ...]: [m, ...] */
struct ggml_tensor *qkv_matmul(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *x);

/* Experts: each token's product with the matrices chosen for it. */

/* Which tokens each expert is chosen by; of `chosen` [k, tokens]. */
struct ggml_tensor *qkv_expert_list(qkv_graph *g, struct ggml_tensor *chosen, int64_t n_experts);
/* w [n, m, experts], x [n, 1 or k, tokens], and that list: [m, k, tokens] */
struct ggml_tensor *qkv_expert_matmul(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *x,
                                      struct ggml_tensor *chosen, struct ggml_tensor *list);

/* The weight, where a node of the graph is a product with one; else NULL. */
const struct ggml_tensor *qkv_product_weight(const struct ggml_tensor *node);

#endif
