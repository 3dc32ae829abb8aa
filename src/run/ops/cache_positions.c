/* Positions within a small cache (mask:…,positions=cache): build.h says what they are. */
#include <math.h>
#include <string.h>

#include "run/graph/build.h"

static int moves(const qkv_edit *edit, int32_t il) {
    return edit->mask.in_cache && qkv_selector_has_layer(&edit->where, il);
}

int64_t qkv_query_ahead(const qkv_graph *g, int64_t b, int32_t il, int32_t head, int64_t query) {
    const qkv_variant *variant = g->members[b].variant;
    for (size_t i = 0; i < variant->n_edits; i++) {
        const qkv_edit *edit = &variant->edits[i];
        if (moves(edit, il) && (!edit->where.rows || edit->where.rows[query]) &&
            qkv_selector_has_query_head(&edit->where, &g->model->hp, il, head))
            return qkv_mask_ahead(&edit->mask, query);
    }
    return 0;
}

/* Turns one head of a query by so many positions back. What RoPE scales by (YaRN) is in x already. */
static void turn_back(const qkv_graph *g, int32_t il, const float *divisors, float *x,
                      int64_t positions) {
    const qkv_hparams *hp = &g->model->hp;
    const qkv_rope *rope = &hp->rope[qkv_layer_rope(g->model, il)];
    const int32_t half = rope->dims / 2, halves = hp->rope_pairs == QKV_ROPE_HALVES;
    const double base = (double)rope->base;
    for (int32_t i = 0; i < half; i++) {
        const double frequency =
            pow(base, -2.0 * i / rope->dims) / (divisors ? (double)divisors[i] : 1);
        const double c = cos((double)positions * frequency), s = sin((double)positions * frequency);
        float *a = x + (halves ? i : 2 * i), *b = x + (halves ? i + half : 2 * i + 1);
        const double xa = (double)*a, xb = (double)*b;
        *a = (float)(xa * c + xb * s);
        *b = (float)(xb * c - xa * s);
    }
}

static void run_turn(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const qkv_product_op *op = data;
    const qkv_graph *g = op->graph;
    const struct ggml_tensor *q = dst->src[0];
    const float *divisors = dst->src[1] ? dst->src[1]->data : NULL;
    const int64_t first = g->step ? g->step->position : g->n_before;
    for (int64_t i = ith; i < q->ne[1] * q->ne[2] * q->ne[3]; i += nth) {
        const int64_t h = i % q->ne[1], t = i / q->ne[1] % q->ne[2], b = i / q->ne[1] / q->ne[2];
        float *x = (float *)dst->data + i * q->ne[0];
        memcpy(x, qkv_head_at(q, h, t, b), (size_t)q->ne[0] * sizeof *x);
        const int64_t ahead = qkv_query_ahead(g, b, op->layer, (int32_t)h, first + t);
        if (ahead) turn_back(g, op->layer, divisors, x, ahead);
    }
}

struct ggml_tensor *qkv_queries_in_cache(qkv_graph *g, int32_t il, struct ggml_tensor *q) {
    const int which = qkv_layer_rope(g->model, il);
    const int has_bias = g->model->hp.alibi_exponent != 0;
    int any = 0;
    for (int64_t b = 0; b < g->n_batch && (which >= 0 || has_bias); b++) {
        const qkv_variant *variant = g->members[b].variant;
        for (size_t i = 0; i < variant->n_edits; i++) any |= moves(&variant->edits[i], il);
    }
    if (!any) return NULL;
    if (which < 0) return q; /* the bias alone says where queries are */
    struct ggml_tensor *from[] = {q, g->in_divisors[which]};
    return qkv_product_node(g, q->ne, from, from[1] ? 2 : 1, run_turn,
                            (qkv_product_op){.kind = QKV_PRODUCT_NONE, .graph = g, .layer = il});
}
