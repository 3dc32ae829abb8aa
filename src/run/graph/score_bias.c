/*
 * ALiBi: the bias by distance that scores have in place of positions (build.h).
 *
 * One operation adds it in place, once products are scaled and capped, so that the site `scores` holds what
 * the softmax sees but for the mask.
 */
#include "run/graph/build.h"

typedef struct place {
    const qkv_graph *graph;
    qkv_query_block block;
    int64_t first_query, first_key; /* their numbers in the text */
    int32_t layer;
    int in_cache; /* queries stand where a small cache has them */
} place;

static place place_of(const qkv_product_op *op, int in_cache) {
    const qkv_graph *g = op->graph;
    place at = {.graph = g, .block = op->block, .layer = op->layer, .in_cache = in_cache};
    at.first_query = at.block.first_row + (g->step ? g->step->position : g->n_before);
    at.first_key = g->step ? g->step->first[qkv_mask_kind(g, op->layer)] : 0;
    return at;
}

static void add_to_row(const place *at, float *row, int64_t n, int32_t head, int64_t query,
                       int64_t b) {
    const float slope = qkv_score_slope(&at->graph->model->hp, at->layer, head);
    if (at->in_cache) query -= qkv_query_ahead(at->graph, b, at->layer, head, query);
    for (int64_t c = 0; c < n; c++) row[c] += slope * (float)(at->first_key + c - query);
}

static void add_bias(const place *at, struct ggml_tensor *dst, int ith, int nth) {
    const int64_t rows = dst->ne[1], heads = dst->ne[2];
    for (int64_t i = ith; i < rows * heads * dst->ne[3]; i += nth) {
        const int32_t head = (int32_t)(at->block.first_head + i / rows % heads);
        add_to_row(at, (float *)dst->data + i * dst->ne[0], dst->ne[0], head,
                   at->first_query + i % rows, i / rows / heads);
    }
}

static void run_in_text(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const place at = place_of(data, 0);
    add_bias(&at, dst, ith, nth);
}

static void run_in_cache(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const place at = place_of(data, 1);
    add_bias(&at, dst, ith, nth);
}

struct ggml_tensor *qkv_score_bias(qkv_graph *g, int32_t il, struct ggml_tensor *scores,
                                   const qkv_query_block *block, int in_cache) {
    if (g->model->hp.alibi_exponent == 0) return scores;
    return qkv_product_inplace(
        g, scores, in_cache ? run_in_cache : run_in_text,
        (qkv_product_op){.kind = QKV_PRODUCT_NONE, .graph = g, .layer = il, .block = *block});
}
