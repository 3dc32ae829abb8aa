/*
 * The feed-forward block: plain, gated, or a choice of experts.
 *
 * A router (router.c) says which experts a token goes to, and what each counts: their outputs are multiplied by
 * that, or their inputs. A shared expert is added for every token; in some models times a sigmoid of its own.
 */
#include <math.h>
#include <string.h>

#include "run/graph/build.h"

/* x · sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x³): the tanh form. ggml's own GELU is a table of
 * F16 values. */
static struct ggml_tensor *gelu_tanh(qkv_graph *g, struct ggml_tensor *x) {
    const float c = 2 * sqrtf(2 / 3.14159265358979f);
    struct ggml_tensor *u = ggml_scale_bias(g->ctx, ggml_sqr(g->ctx, x), 0.044715f * c, c);
    u = ggml_mul(g->ctx, u, x);
    return ggml_mul(g->ctx, x, ggml_sigmoid(g->ctx, u));
}

static struct ggml_tensor *xielu(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    const qkv_xielu *own = &g->model->hp.xielu[il];
    return ggml_xielu(g->ctx, x, own->alpha_n, own->alpha_p, own->beta, own->eps);
}

struct ggml_tensor *qkv_activated(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    switch (g->model->hp.activation) {
    case QKV_ACT_GELU_TANH:
        return gelu_tanh(g, x);
    case QKV_ACT_GELU_ERF:
        return ggml_gelu_erf(g->ctx, x);
    case QKV_ACT_RELU:
        return ggml_relu(g->ctx, x);
    case QKV_ACT_RELU_SQUARED:
        return ggml_sqr(g->ctx, ggml_relu(g->ctx, x));
    case QKV_ACT_XIELU:
        return xielu(g, il, x);
    default:
        return ggml_silu(g->ctx, x);
    }
}

static struct ggml_tensor *gated(qkv_graph *g, int32_t il, struct ggml_tensor *gate,
                                 struct ggml_tensor *up) {
    if (g->model->hp.activation == QKV_ACT_SWIGLU_CLAMPED)
        return ggml_swiglu_oai(g->ctx, gate, up, 1.702f, 7.0f);
    return ggml_mul(g->ctx, qkv_activated(g, il, gate), up);
}

/* One half of [2F, T, B]. */
static struct ggml_tensor *half(qkv_graph *g, struct ggml_tensor *x, int second) {
    int64_t n = x->ne[0] / 2;
    return ggml_cont(g->ctx, ggml_view_3d(g->ctx, x, n, x->ne[1], x->ne[2], x->nb[1], x->nb[2],
                                          second ? (size_t)n * sizeof(float) : 0));
}

static struct ggml_tensor *dense(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    struct ggml_tensor *up = qkv_linear(g, LAYER(g, il, UP), LAYER(g, il, UP_BIAS), x); // [F, T, B]
    switch (g->model->family->mlp) {
    case QKV_MLP_GATED:
        up = gated(g, il, qkv_linear(g, LAYER(g, il, GATE), LAYER(g, il, GATE_BIAS), x), up);
        break;
    case QKV_MLP_GATED_FUSED:
        up = gated(g, il, half(g, up, 0), half(g, up, 1));
        break;
    default:
        up = qkv_activated(g, il, up);
    }
    up = qkv_tap(g, QKV_SITE_MLP_ACT, il, up);
    return qkv_linear(g, LAYER(g, il, DOWN), LAYER(g, il, DOWN_BIAS), up); // [D, T, B]
}

/* Each token's product with the weights of the experts chosen for it: x [n, 1 or k, T·B]. */
static struct ggml_tensor *expert_linear(qkv_graph *g, struct ggml_tensor *w,
                                         struct ggml_tensor *bias, struct ggml_tensor *x,
                                         struct ggml_tensor *chosen, struct ggml_tensor *list) {
    x = qkv_expert_matmul(g, w, x, chosen, list);
    return bias ? ggml_add_id(g->ctx, x, bias, chosen) : x;
}

/* [D, k, T·B] to [D, T, B], added in the order of the choice. One operation, so that the size of the
 * graph does not depend on how many experts there are. */
static void sum_experts(struct ggml_tensor *dst, int ith, int nth, void *unused) {
    (void)unused;
    const struct ggml_tensor *all = dst->src[0];
    const int64_t D = all->ne[0], k = all->ne[1];
    for (int64_t token = ith; token < all->ne[2]; token += nth) {
        const float *from = (const float *)all->data + token * k * D;
        float *to = (float *)dst->data + token * D;
        memcpy(to, from, (size_t)D * sizeof *to);
        for (int64_t i = 1; i < k; i++) {
            for (int64_t d = 0; d < D; d++) to[d] += from[i * D + d];
        }
    }
}

static struct ggml_tensor *shared_expert(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    struct ggml_tensor *up = qkv_linear(g, LAYER(g, il, SHARED_UP), NULL, x); // [s, T, B]
    up = gated(g, il, qkv_linear(g, LAYER(g, il, SHARED_GATE), NULL, x), up);
    up = qkv_linear(g, LAYER(g, il, SHARED_DOWN), NULL, up); // [D, T, B]
    if (!LAYER(g, il, SHARED_ROUTER)) return up;
    struct ggml_tensor *share = qkv_linear(g, LAYER(g, il, SHARED_ROUTER), NULL, x); // [1, T, B]
    return ggml_mul(g->ctx, up, ggml_sigmoid(g->ctx, share));
}

static struct ggml_tensor *experts(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    struct ggml_context *ctx = g->ctx;
    const qkv_hparams *hp = &g->model->hp;
    int64_t k = hp->n_expert_used, D = hp->n_embd, rows = x->ne[1], n = rows * g->n_batch;
    struct ggml_tensor *scores = qkv_linear(g, LAYER(g, il, ROUTER), LAYER(g, il, ROUTER_BIAS), x);
    scores = ggml_reshape_2d(ctx, scores, hp->n_expert, n); // [E, T·B]
    const qkv_route route = qkv_route_tokens(g, scores, LAYER(g, il, CHOICE_BIAS));
    struct ggml_tensor *chosen = route.chosen; // [k, T·B]
    struct ggml_tensor *list = qkv_expert_list(g, chosen, hp->n_expert);

    x = ggml_reshape_3d(ctx, x, D, 1, n);
    if (hp->router.on_input) /* [D, k, T·B] */
        x = ggml_mul(ctx, ggml_repeat_4d(ctx, x, D, k, n, 1), route.share);
    struct ggml_tensor *up =
        expert_linear(g, LAYER(g, il, UP_EXPERTS), LAYER(g, il, UP_EXPERTS_BIAS), x, chosen, list);
    struct ggml_tensor *gate = expert_linear(g, LAYER(g, il, GATE_EXPERTS),
                                             LAYER(g, il, GATE_EXPERTS_BIAS), x, chosen, list);
    up = gated(g, il, gate, up); // [f, k, T·B]
    up = expert_linear(g, LAYER(g, il, DOWN_EXPERTS), LAYER(g, il, DOWN_EXPERTS_BIAS), up, chosen,
                       list);
    if (!hp->router.on_input) up = ggml_mul(ctx, up, route.share); // [D, k, T·B]
    return ggml_custom_4d(ctx, GGML_TYPE_F32, D, rows, g->n_batch, 1, &up, 1, sum_experts,
                          GGML_N_TASKS_MAX, NULL);
}

struct ggml_tensor *qkv_feed_forward(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    if (!LAYER(g, il, ROUTER)) return dense(g, il, x);
    struct ggml_tensor *out = experts(g, il, x);
    return LAYER(g, il, SHARED_UP) ? ggml_add(g->ctx, out, shared_expert(g, il, x)) : out;
}
