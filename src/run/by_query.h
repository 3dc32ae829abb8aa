/*
 * Edits by query of keys and values (quant:…,per=query): a query sees those of the first tokens edited, and the
 * others as they are.
 *
 * Products are computed with both, and each cell is taken from the one that its query sees. Variants and heads
 * without such edits have the bits that they have without.
 */
#ifndef QKV_RUN_BY_QUERY_H
#define QKV_RUN_BY_QUERY_H

#include "run/build.h"

/* Keys or values, packed: with edits by query, and without; the latter NULL where there are none. */
typedef struct qkv_two_ways {
    struct ggml_tensor *edited, *plain;
} qkv_two_ways;

/* Scores of a block, [keys, rows, heads, B] twice. */
struct ggml_tensor *qkv_by_query_scores(qkv_graph *g, int32_t il, struct ggml_tensor *edited,
                                        struct ggml_tensor *plain, const qkv_query_block *block);
/* The pattern of a block times the values: [d, H, rows, B]. */
struct ggml_tensor *qkv_by_query_values(qkv_graph *g, int32_t il, struct ggml_tensor *pattern,
                                        qkv_two_ways values, const qkv_query_block *block);

#endif
