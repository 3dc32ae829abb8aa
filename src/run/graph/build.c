/* The smallest pieces of the forward pass; see build.h. All arithmetic is in F32. */
#include "run/graph/build.h"

struct ggml_tensor *qkv_input(qkv_graph *g, enum ggml_type type, int64_t n0, int64_t n1,
                              int64_t n2) {
    struct ggml_tensor *t = ggml_new_tensor_3d(g->ctx, type, n0, n1, n2);
    ggml_set_input(t);
    return t;
}

struct ggml_tensor *qkv_linear(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *bias,
                               struct ggml_tensor *x) {
    x = qkv_matmul(g, w, x);
    return bias ? ggml_add(g->ctx, x, bias) : x;
}

struct ggml_tensor *qkv_norm(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *bias,
                             struct ggml_tensor *x) {
    float eps = g->model->hp.norm_eps;
    if (!w) return x;
    x = qkv_check_norm(g, w, x);
    x = g->model->family->norm == QKV_NORM_RMS ? ggml_rms_norm(g->ctx, x, eps)
                                               : ggml_norm(g->ctx, x, eps);
    x = ggml_mul(g->ctx, x, w);
    return bias ? ggml_add(g->ctx, x, bias) : x;
}

struct ggml_tensor *qkv_scaled(qkv_graph *g, struct ggml_tensor *x, float factor) {
    return factor == 1 ? x : ggml_scale(g->ctx, x, factor);
}

struct ggml_tensor *qkv_clamped(qkv_graph *g, struct ggml_tensor *heads) {
    const float c = g->model->hp.head_clamp;
    return c == 0 ? heads : ggml_clamp(g->ctx, ggml_cont(g->ctx, heads), -c, c);
}

struct ggml_tensor *qkv_softcap(qkv_graph *g, struct ggml_tensor *x, float c) {
    if (c == 0) return x;
    return ggml_scale(g->ctx, ggml_tanh(g->ctx, ggml_scale(g->ctx, x, 1 / c)), c);
}

struct ggml_tensor *qkv_for_each_variant(qkv_graph *g, struct ggml_tensor *x) {
    if (g->n_batch == 1) return x;
    return ggml_repeat_4d(g->ctx, x, x->ne[0], x->ne[1], x->ne[2], g->n_batch);
}
