/* What layers with linear mixers consist of; see mixer.h. */
#include "run/graph/mixer.h"

/* [inner, T, B] normalised head by head, times SiLU of z. */
static struct ggml_tensor *gated_norm(qkv_graph *g, int32_t il, struct ggml_tensor *x,
                                      struct ggml_tensor *z) {
    const qkv_mixer_shape *m = &g->model->hp.mixer;
    struct ggml_tensor *heads =
        ggml_reshape_4d(g->ctx, x, m->inner / m->n_heads, m->n_heads, g->n_tokens, g->n_batch);
    heads = qkv_norm(g, MIXER(g, il, NORM), NULL, heads);
    x = ggml_reshape_3d(g->ctx, heads, m->inner, g->n_tokens, g->n_batch);
    return ggml_mul(g->ctx, x, ggml_silu(g->ctx, z));
}

/* Gated delta-net: q, k, v through the convolution and SiLU, the delta rule, and a norm with a gate. */
static struct ggml_tensor *delta_net(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    struct ggml_tensor *mixed = qkv_matmul(g, MIXER(g, il, QKV), x); // [C, T, B]
    struct ggml_tensor *z = qkv_matmul(g, MIXER(g, il, GATE), x);    // [inner, T, B]
    qkv_delta_inputs in = {.decay = MIXER(g, il, DECAY), .bias = MIXER(g, il, STEP_BIAS)};
    if (MIXER(g, il, BETA_ALPHA)) {
        in.alpha = qkv_matmul(g, MIXER(g, il, BETA_ALPHA), x); // [2h, T, B]
    } else {
        in.alpha = qkv_matmul(g, MIXER(g, il, ALPHA), x); // [h, T, B]
        in.beta = qkv_matmul(g, MIXER(g, il, BETA), x);
    }
    mixed = qkv_causal_conv(g, il, MIXER(g, il, CONV), MIXER(g, il, CONV_BIAS), mixed);
    in.qkv = ggml_silu(g->ctx, mixed);
    return gated_norm(g, il, qkv_delta_rule(g, il, &in), z);
}

/* One third of [3D, T, B]. */
static struct ggml_tensor *third(qkv_graph *g, struct ggml_tensor *x, int which) {
    const int64_t n = x->ne[0] / 3;
    return ggml_cont(g->ctx, ggml_view_3d(g->ctx, x, n, x->ne[1], x->ne[2], x->nb[1], x->nb[2],
                                          (size_t)(which * n) * sizeof(float)));
}

/* b, c and x of one product: c times the convolution of b times x. */
static struct ggml_tensor *short_conv(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    struct ggml_tensor *all = qkv_matmul(g, MIXER(g, il, SHORT_IN), x); // [3D, T, B]
    x = ggml_mul(g->ctx, third(g, all, 0), third(g, all, 2));
    x = qkv_causal_conv(g, il, MIXER(g, il, SHORT_TAPS), NULL, x); // [D, T, B]
    return ggml_mul(g->ctx, third(g, all, 1), x);
}

struct ggml_tensor *qkv_mixer_output(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    struct ggml_tensor *w = MIXER(g, il, OUT) ? MIXER(g, il, OUT) : MIXER(g, il, SHORT_OUT);
    return qkv_matmul(g, w, x);
}

struct ggml_tensor *qkv_mixer(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    x = qkv_attention_input(g, il, x);
    switch (g->model->hp.mixer_kind) {
    case QKV_MIXER_DELTA:
    case QKV_MIXER_DELTA_RUNS:
        return delta_net(g, il, x);
    case QKV_MIXER_SHORT_CONV:
        return short_conv(g, il, x);
    case QKV_MIXER_NONE:
        break;
    }
    return NULL;
}
