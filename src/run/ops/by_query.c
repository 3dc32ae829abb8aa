/* Edits by query of keys and values (quant:…,per=query): build.h says what they are. */
#include "run/graph/build.h"

#include <string.h>

/* The edit that makes a difference to the queries of a head; NULL: none does. */
static const qkv_edit *edit_by_query(const qkv_graph *g, qkv_site site, int32_t il, int64_t b,
                                     int64_t head) {
    const qkv_variant *variant = g->members[b].variant;
    for (size_t i = 0; i < variant->n_edits; i++) {
        const qkv_edit *edit = &variant->edits[i];
        if ((edit->flags & QKV_EDIT_BY_QUERY) && edit->where.site == site &&
            qkv_selector_has_layer(&edit->where, il) &&
            qkv_selector_has_query_head(&edit->where, &g->model->hp, il, (int32_t)head))
            return edit;
    }
    return NULL;
}

/* One row of a block of maps: its member, head and query, and the first key that is seen as it is. */
typedef struct map_row {
    int64_t b, head, row, from, keys;
    size_t at; /* in the tensor */
} map_row;

static map_row row_of(const qkv_product_op *op, qkv_site site, const struct ggml_tensor *map,
                      int64_t i) {
    map_row r = {.row = i % map->ne[1],
                 .head = i / map->ne[1] % map->ne[2],
                 .b = i / map->ne[1] / map->ne[2],
                 .keys = map->ne[0],
                 .from = map->ne[0],
                 .at = (size_t)(i * map->ne[0])};
    const qkv_edit *edit =
        edit_by_query(op->graph, site, op->layer, r.b, op->block.first_head + r.head);
    if (edit) r.from = qkv_quant_seen(&edit->quant, op->block.first_row + r.row);
    if (r.from > r.keys) r.from = r.keys;
    return r;
}

static void run_scores(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const float *edited = dst->src[0]->data, *plain = dst->src[1]->data;
    for (int64_t i = ith; i < dst->ne[1] * dst->ne[2] * dst->ne[3]; i += nth) {
        const map_row r = row_of(data, QKV_SITE_K_ROT, dst, i);
        float *out = (float *)dst->data + r.at;
        memcpy(out, edited + r.at, (size_t)r.from * sizeof *out);
        memcpy(out + r.from, plain + r.at + r.from, (size_t)(r.keys - r.from) * sizeof *out);
    }
}

/* The weights of keys that are seen edited, or of the others; 0 elsewhere. */
static void copy_part(struct ggml_tensor *dst, int ith, int nth, const qkv_product_op *op,
                      int is_edited) {
    for (int64_t i = ith; i < dst->ne[1] * dst->ne[2] * dst->ne[3]; i += nth) {
        const map_row r = row_of(op, QKV_SITE_V, dst, i);
        const float *from = (const float *)dst->src[0]->data + r.at;
        float *out = (float *)dst->data + r.at;
        const int64_t first = is_edited ? 0 : r.from, end = is_edited ? r.from : r.keys;
        memset(out, 0, (size_t)r.keys * sizeof *out);
        memcpy(out + first, from + first, (size_t)(end - first) * sizeof *out);
    }
}

static void run_edited_part(struct ggml_tensor *dst, int ith, int nth, void *data) {
    copy_part(dst, ith, nth, data, 1);
}

static void run_plain_part(struct ggml_tensor *dst, int ith, int nth, void *data) {
    copy_part(dst, ith, nth, data, 0);
}

/* Sums of the two parts, [d, H, rows, B]; where there is no edited edit, the first is the whole. */
static void run_sum(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const qkv_product_op *op = data;
    const int64_t d = dst->ne[0], heads = dst->ne[1];
    for (int64_t i = ith; i < heads * dst->ne[2] * dst->ne[3]; i += nth) {
        const int64_t head = i % heads, b = i / heads / dst->ne[2];
        const float *edited = (const float *)dst->src[0]->data + i * d;
        const float *plain = (const float *)dst->src[1]->data + i * d;
        float *out = (float *)dst->data + i * d;
        const int adds = edit_by_query(op->graph, QKV_SITE_V, op->layer, b, head) != NULL;
        for (int64_t c = 0; c < d; c++) out[c] = adds ? edited[c] + plain[c] : edited[c];
    }
}

static struct ggml_tensor *node(qkv_graph *g, int32_t il, const struct ggml_tensor *like,
                                struct ggml_tensor *a, struct ggml_tensor *b, ggml_custom_op_t run,
                                const qkv_query_block *block) {
    struct ggml_tensor *from[] = {a, b};
    return qkv_product_node(
        g, like->ne, from, b ? 2 : 1, run,
        (qkv_product_op){.kind = QKV_PRODUCT_NONE, .graph = g, .layer = il, .block = *block});
}

struct ggml_tensor *qkv_by_query_scores(qkv_graph *g, int32_t il, struct ggml_tensor *edited,
                                        struct ggml_tensor *plain, const qkv_query_block *block) {
    return node(g, il, edited, edited, plain, run_scores, block);
}

struct ggml_tensor *qkv_by_query_values(qkv_graph *g, int32_t il, struct ggml_tensor *pattern,
                                        qkv_two_ways values, const qkv_query_block *block) {
    const int64_t d = g->model->hp.layers[il].value_dim;
    struct ggml_tensor *edited = node(g, il, pattern, pattern, NULL, run_edited_part, block);
    struct ggml_tensor *plain = node(g, il, pattern, pattern, NULL, run_plain_part, block);
    edited = qkv_value_product(g, edited, values.edited, d);
    plain = qkv_value_product(g, plain, values.plain, d);
    return node(g, il, edited, edited, plain, run_sum, block);
}
