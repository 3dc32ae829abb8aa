/*
 * Attention over cached keys and values, as operations of the graph.
 *
 * Members of a batch have caches of their own, with as many heads as the model has for keys and values,
 * or as for queries. Where there is one new token, the query heads that share a head of keys are the
 * rows of one product, so that the keys are read once.
 */
#include "kernel/product.h"

#include <string.h>

#include "run/graph/build.h"

/* Rows, and keys, that a thread takes at a time. */
#define ROWS_AT_A_TIME ((int64_t)48)
#define KEYS_AT_A_TIME (2 * QKV_PIECE)

static const qkv_kv_layer *cache_of(const qkv_product_op *op, int64_t b) {
    return op->graph->step->caches[op->layer * op->graph->n_members + b];
}

static int64_t float_stride(size_t bytes) {
    return (int64_t)(bytes / sizeof(float));
}

/* ---- writing ---- */

/* A batch in which one member has split groups has as many heads as queries have; the others' are
 * copies of each other. */
static int64_t source_head(const struct ggml_tensor *x, int64_t head, int64_t heads) {
    return head * x->ne[1] / heads;
}

static void run_cache_keys(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const qkv_product_op *op = data;
    const struct ggml_tensor *k = dst->src[0];
    for (int64_t i = ith; i < k->ne[2] * k->ne[3]; i += nth) {
        const int64_t t = i % k->ne[2], b = i / k->ne[2];
        const qkv_kv_layer *cache = cache_of(op, b);
        const int64_t slot = op->graph->step->position + t - cache->first;
        for (int64_t h = 0; h < cache->k_heads; h++)
            qkv_pack_column(qkv_kv_keys(cache, h), k->ne[0], cache->capacity, slot,
                            qkv_head_at(k, source_head(k, h, cache->k_heads), t, b));
    }
}

static void run_cache_values(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const qkv_product_op *op = data;
    const struct ggml_tensor *v = dst->src[0];
    for (int64_t i = ith; i < v->ne[2] * v->ne[3]; i += nth) {
        const int64_t t = i % v->ne[2], b = i / v->ne[2];
        const qkv_kv_layer *cache = cache_of(op, b);
        const int64_t slot = op->graph->step->position + t - cache->first;
        for (int64_t h = 0; h < cache->v_heads; h++)
            qkv_pack_row(qkv_kv_values(cache, h), cache->capacity, v->ne[0], slot,
                         qkv_head_at(v, source_head(v, h, cache->v_heads), t, b));
    }
}

static struct ggml_tensor *write_cache(qkv_graph *g, int32_t il, struct ggml_tensor *x,
                                       ggml_custom_op_t run) {
    static const int64_t ne[] = {1, 1, 1, 1};
    struct ggml_tensor *written = qkv_product_node(
        g, ne, &x, 1, run, (qkv_product_op){.kind = QKV_PRODUCT_NONE, .graph = g, .layer = il});
    ggml_build_forward_expand(g->cgraph, written);
    return written;
}

struct ggml_tensor *qkv_cache_keys(qkv_graph *g, int32_t il, struct ggml_tensor *k) {
    return write_cache(g, il, k, run_cache_keys);
}

struct ggml_tensor *qkv_cache_values(qkv_graph *g, int32_t il, struct ggml_tensor *v) {
    return write_cache(g, il, v, run_cache_values);
}

/* ---- reading ---- */

/* Query heads [first, first + n) of a product, which share one head of the cache. */
typedef struct head_group {
    int64_t first, n, b;
} head_group;

/* Keys that queries up to row `end` of the step see, counted from the first one of the cache. */
static int64_t keys_up_to(const qkv_product_op *op, const qkv_kv_layer *cache, int64_t end) {
    return op->graph->step->position + end - cache->first;
}

/* With one new token the heads of a group are rows; otherwise tokens are, and heads come one by one. */
static int64_t heads_at_a_time(const qkv_product_op *op, int64_t rows) {
    return rows == 1 ? qkv_layer_group(&op->graph->model->hp.layers[op->layer]) : 1;
}

/* Scores of rows [row, row + rows) with keys [from, end). */
static void multiply_keys(const struct ggml_tensor *dst, const qkv_product_op *op, head_group heads,
                          int64_t row, int64_t from) {
    const struct ggml_tensor *q = dst->src[0];
    const qkv_kv_layer *cache = cache_of(op, heads.b);
    const int64_t keys = dst->ne[0], block_rows = dst->ne[1], H = dst->ne[2], d = q->ne[0];
    const int64_t left = block_rows - row, rows = left < ROWS_AT_A_TIME ? left : ROWS_AT_A_TIME;
    const int64_t visible = keys_up_to(op, cache, op->block.first_row + row + rows);
    const int64_t end = from + KEYS_AT_A_TIME < keys ? from + KEYS_AT_A_TIME : keys;
    const int64_t known = visible < from ? from : visible < end ? visible : end;
    const int by_heads = heads.n > 1;
    float *out =
        (float *)dst->data + ((heads.b * H + heads.first) * block_rows + row) * keys + from;
    const qkv_row_product p = {.a = qkv_head_at(q, heads.first, op->block.first_row + row, heads.b),
                               .a_stride = float_stride(by_heads ? q->nb[1] : q->nb[2]),
                               .packed = qkv_kv_keys(cache, heads.first * cache->k_heads / H),
                               .packed_width = d,
                               .packed_columns = cache->capacity,
                               .first_column = from,
                               .out = out,
                               .out_stride = keys, /* of heads too, where there is one row */
                               .rows = by_heads ? heads.n : rows,
                               .columns = known - from,
                               .width = d};
    if (known > from) qkv_multiply_rows(&p);
    for (int64_t r = 0; r < p.rows; r++)
        memset(out + r * keys + known - from, 0, (size_t)(end - known) * sizeof *out);
}

/* A group whose heads have caches of their own goes head by head: how many times. */
static int64_t take_apart(head_group *heads, int32_t cached_heads, int64_t H) {
    if (cached_heads < H) return 1;
    const int64_t n = heads->n;
    heads->n = 1;
    return n;
}

static void run_key_product(struct ggml_tensor *dst, int ith, int nth, void *data) {
    (void)ith, (void)nth;
    qkv_product_op *op = data;
    const int64_t rows = dst->ne[1], H = dst->ne[2], each = heads_at_a_time(op, rows);
    const int64_t parts = (rows + ROWS_AT_A_TIME - 1) / ROWS_AT_A_TIME;
    const int64_t key_parts = (dst->ne[0] + KEYS_AT_A_TIME - 1) / KEYS_AT_A_TIME;
    const int64_t groups = H / each;
    for (int64_t i; (i = qkv_product_take(op)) < key_parts * parts * groups * dst->ne[3];) {
        const int64_t from = i % key_parts * KEYS_AT_A_TIME, row = i / key_parts % parts;
        const int64_t at = i / key_parts / parts; /* group and member */
        head_group heads = {.first = at % groups * each, .n = each, .b = at / groups};
        int64_t n = take_apart(&heads, cache_of(op, heads.b)->k_heads, H);
        for (; n > 0; n--, heads.first++) multiply_keys(dst, op, heads, row * ROWS_AT_A_TIME, from);
    }
}

struct ggml_tensor *qkv_cached_key_product(qkv_graph *g, int32_t il, struct ggml_tensor *q,
                                           struct ggml_tensor *keys, const qkv_query_block *block) {
    struct ggml_tensor *from[] = {q, keys};
    const int64_t ne[] = {block->keys, block->rows, block->n_heads, q->ne[3]};
    return qkv_product_node(g, ne, from, 2, run_key_product,
                            (qkv_product_op){.kind = QKV_PRODUCT_ATTENTION,
                                             .width = q->ne[0],
                                             .block = *block,
                                             .graph = g,
                                             .layer = il});
}

static void multiply_values(const struct ggml_tensor *dst, const qkv_product_op *op,
                            head_group heads, int64_t row) {
    const struct ggml_tensor *pattern = dst->src[0];
    const qkv_kv_layer *cache = cache_of(op, heads.b);
    const int64_t d = dst->ne[0], H = dst->ne[1], block_rows = dst->ne[2], keys = pattern->ne[0];
    const int64_t left = block_rows - row, rows = left < ROWS_AT_A_TIME ? left : ROWS_AT_A_TIME;
    const int64_t visible = keys_up_to(op, cache, op->block.first_row + row + rows);
    const int by_heads = heads.n > 1;
    qkv_multiply_rows(&(qkv_row_product){
        .a = (const float *)pattern->data + ((heads.b * H + heads.first) * block_rows + row) * keys,
        .a_stride = keys,
        .packed = qkv_kv_values(cache, heads.first * cache->v_heads / H),
        .packed_width = cache->capacity,
        .packed_columns = d,
        .out = (float *)dst->data + ((heads.b * block_rows + row) * H + heads.first) * d,
        .out_stride = by_heads ? d : H * d,
        .rows = by_heads ? heads.n : rows,
        .columns = d,
        .width = visible < keys ? visible : keys});
}

static void run_value_product(struct ggml_tensor *dst, int ith, int nth, void *data) {
    (void)ith, (void)nth;
    qkv_product_op *op = data;
    const int64_t H = dst->ne[1], rows = dst->ne[2], each = heads_at_a_time(op, rows);
    const int64_t parts = (rows + ROWS_AT_A_TIME - 1) / ROWS_AT_A_TIME, groups = H / each;
    for (int64_t i; (i = qkv_product_take(op)) < parts * groups * dst->ne[3];) {
        const int64_t at = i / parts;
        head_group heads = {.first = at % groups * each, .n = each, .b = at / groups};
        int64_t n = take_apart(&heads, cache_of(op, heads.b)->v_heads, H);
        for (; n > 0; n--, heads.first++)
            multiply_values(dst, op, heads, i % parts * ROWS_AT_A_TIME);
    }
}

struct ggml_tensor *qkv_cached_value_product(qkv_graph *g, int32_t il, struct ggml_tensor *pattern,
                                             struct ggml_tensor *values, int64_t first_row) {
    struct ggml_tensor *from[] = {pattern, values};
    const int64_t d = g->model->hp.layers[il].value_dim;
    const int64_t ne[] = {d, pattern->ne[2], pattern->ne[1], pattern->ne[3]};
    return qkv_product_node(g, ne, from, 2, run_value_product,
                            (qkv_product_op){.kind = QKV_PRODUCT_ATTENTION,
                                             .width = pattern->ne[0],
                                             .block = {.first_row = first_row},
                                             .graph = g,
                                             .layer = il});
}
