/*
 * What a query or key becomes by its position: RoPE, and the temperature of queries.
 *
 * Most families normalise heads, and then turn them: edits of q and k are made in between. Where the norm
 * comes after RoPE, q and k are what it gives, and nothing is left to do for q_rot and k_rot.
 */
#include <math.h>

#include "run/graph/build.h"

struct ggml_tensor *qkv_rotate(qkv_graph *g, int32_t il, struct ggml_tensor *x,
                               struct ggml_tensor *position) {
    const qkv_hparams *hp = &g->model->hp;
    const int which = qkv_layer_rope(g->model, il);
    if (which < 0) return x;
    const int mode =
        hp->rope_pairs == QKV_ROPE_HALVES ? GGML_ROPE_TYPE_NEOX : GGML_ROPE_TYPE_NORMAL;
    const qkv_rope *rope = &hp->rope[which];
    return ggml_rope_ext(g->ctx, x, position, g->in_divisors[which], rope->dims, mode, 0,
                         rope->base, 1, 0, rope->attn_factor, 0, 0);
}

struct ggml_tensor *qkv_rotate_before_norm(qkv_graph *g, qkv_site in, int32_t il,
                                           struct ggml_tensor *x) {
    if (!g->model->family->norm_after_rope || in == QKV_SITE_V_IN) return x;
    return qkv_rotate(g, il, x, g->in_position);
}

struct ggml_tensor *qkv_rotate_after_norm(qkv_graph *g, int32_t il, struct ggml_tensor *x,
                                          struct ggml_tensor *position) {
    return g->model->family->norm_after_rope ? x : qkv_rotate(g, il, x, position);
}

/* q [d, H, T, B] and positions [T] */
static void run_temper(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const qkv_temperature *t = data;
    const struct ggml_tensor *q = dst->src[0];
    const int32_t *position = dst->src[1]->data;
    const int64_t d = q->ne[0], H = q->ne[1], T = q->ne[2];
    for (int64_t i = ith; i < T * q->ne[3]; i += nth) {
        const double steps = floor((double)(position[i % T] + t->offset) / t->step);
        const float factor = (float)(1 + (double)t->scale * log1p(steps));
        for (int64_t h = 0; h < H; h++) {
            const float *from = qkv_head_at(q, h, i % T, i / T);
            float *to = qkv_head_at(dst, h, i % T, i / T);
            for (int64_t c = 0; c < d; c++) to[c] = from[c] * factor;
        }
    }
}

struct ggml_tensor *qkv_tempered(qkv_graph *g, int32_t il, struct ggml_tensor *q) {
    if (!qkv_layer_has_temperature(g->model, il)) return q;
    struct ggml_tensor *from[] = {ggml_is_contiguous(q) ? q : ggml_cont(g->ctx, q), g->in_position};
    return ggml_custom_4d(g->ctx, GGML_TYPE_F32, q->ne[0], q->ne[1], q->ne[2], q->ne[3], from, 2,
                          run_temper, GGML_N_TASKS_MAX, (void *)&g->model->hp.temperature);
}
