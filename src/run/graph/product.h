/*
 * The products of a pass, as operations of the graph (kernel/product.h): of weights with
 * activations, and inside attention.
 *
 * Columns of all tokens and variants go through one product: how many there are does not show in
 * the results. Nor does the number of threads.
 */
#ifndef QKV_RUN_PRODUCT_H
#define QKV_RUN_PRODUCT_H

#include "run/graph/graph.h"

/* w [n, m] times x [n, ...]: [m, ...] */
struct ggml_tensor *qkv_matmul(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *x);

/* Products of single inputs with some rows of a matrix each: number i is of input[i], with `rows` rows from
 * first[i] on. The lists must outlive the graph. */
typedef struct qkv_row_choice {
    const int32_t *input;
    const int64_t *first;
    int64_t n, rows;
} qkv_row_choice;

/* x [n, T, inputs] to [rows, T, choice->n]; the bias may be NULL. */
struct ggml_tensor *qkv_rows_matmul(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *bias,
                                    struct ggml_tensor *x, const qkv_row_choice *choice);

/* Experts: each token's product with the matrices chosen for it. */

/* Which tokens each expert is chosen by; of `chosen` [k, tokens]. */
struct ggml_tensor *qkv_expert_list(qkv_graph *g, struct ggml_tensor *chosen, int64_t n_experts);
/* w [n, m, experts], x [n, 1 or k, tokens], and that list: [m, k, tokens] */
struct ggml_tensor *qkv_expert_matmul(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *x,
                                      struct ggml_tensor *chosen, struct ggml_tensor *list);

/* Attention. Heads of k and v are packed once, for all query heads that share them and for all
 * blocks of queries. */

/* Heads [first, first + n) of k [d, G, T, B], for products with queries. */
struct ggml_tensor *qkv_packed_keys(qkv_graph *g, struct ggml_tensor *k, int64_t first, int64_t n);
/* All heads of v [d, G, T, B], for products with patterns. */
struct ggml_tensor *qkv_packed_values(qkv_graph *g, struct ggml_tensor *v);

/* A block of queries: all heads, or `n_heads` of them from `first_head` on, which share the heads
 * that were packed; rows [first_row, first_row + rows), and the keys [0, keys). */
typedef struct qkv_query_block {
    int64_t first_head, n_heads, first_row, rows, keys;
} qkv_query_block;

/* q [d, H, T, B] times keys: [keys, rows, heads, B] */
struct ggml_tensor *qkv_key_product(qkv_graph *g, struct ggml_tensor *q, struct ggml_tensor *keys,
                                    const qkv_query_block *block);
/* pattern [keys, rows, H, B] times values of width d: [d, H, rows, B] */
struct ggml_tensor *qkv_value_product(qkv_graph *g, struct ggml_tensor *pattern,
                                      struct ggml_tensor *values, int64_t d);

/* The same with keys and values that a step has in caches (cached_product.c). */

/* Writes k or v [d, heads, T, B] into the caches of a layer. The result stands for the caches: who
 * reads them comes after it. */
struct ggml_tensor *qkv_cache_keys(qkv_graph *g, int32_t il, struct ggml_tensor *k);
struct ggml_tensor *qkv_cache_values(qkv_graph *g, int32_t il, struct ggml_tensor *v);
/* Keys that are not there yet, or that no query of the block sees, get the score 0. */
struct ggml_tensor *qkv_cached_key_product(qkv_graph *g, int32_t il, struct ggml_tensor *q,
                                           struct ggml_tensor *keys, const qkv_query_block *block);
/* For a block of queries whose first one is row `first_row` of the step. */
struct ggml_tensor *qkv_cached_value_product(qkv_graph *g, int32_t il, struct ggml_tensor *pattern,
                                             struct ggml_tensor *values, int64_t first_row);

/* What kind of product a node of the graph is. */
typedef enum qkv_product_kind {
    QKV_PRODUCT_NONE,
    QKV_PRODUCT_WEIGHT, /* its first source is the weight */
    QKV_PRODUCT_ATTENTION
} qkv_product_kind;

/* One product of a graph. Threads take parts of it in turn: on a busy machine one may get much more
 * done than another. */
struct qkv_product_op {
    atomic_llong next;
    qkv_product_kind kind;
    int64_t width;          /* terms of each sum */
    qkv_query_block block;  /* of queries times keys */
    const qkv_graph *graph; /* of products with caches */
    int32_t layer;
    int32_t dots;          /* of experts and chosen rows: products are dots (kernel/dot.h) */
    qkv_row_choice choice; /* n is 0: all rows and inputs */
};

/* A product in the graph. Its node leads back to the operation, for those who read the graph. */
struct ggml_tensor *qkv_product_node(qkv_graph *g, const int64_t ne[4], struct ggml_tensor **from,
                                     int n_from, ggml_custom_op_t run, qkv_product_op how);
/* The same of an operation that changes x where it is. */
struct ggml_tensor *qkv_product_inplace(qkv_graph *g, struct ggml_tensor *x, ggml_custom_op_t run,
                                        qkv_product_op how);
/* The next part. */
int64_t qkv_product_take(qkv_product_op *op);
/* One head of one token. */
float *qkv_head_at(const struct ggml_tensor *x, int64_t head, int64_t token, int64_t b);

/* And the multiplications and additions that it takes, and the bytes of weights that it reads. */
qkv_product_kind qkv_product_of(const struct ggml_tensor *node, double *flop, double *bytes);

#endif
