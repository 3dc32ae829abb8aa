/*
 * The forward pass, as ordinary graph-building code. What the families differ in is read from their description; where the
 * pass can be read or changed it calls qkv_tap.
 *
 * All arithmetic is in F32. A weight of another type is turned into F32 before its product: ggml's own kernels would round
 * the activations to the weight's type instead, by an amount that depends on the length of the prompt.
 */
#include <math.h>

#include "run/graph.h"

#define LAYER(g, il, slot) ((g)->model->layers[il].w[QKV_LAYER_##slot])
#define MODEL(g, slot) ((g)->model->w[QKV_MODEL_##slot])

/* Tensors that one layer adds to the graph at most; taps included. */
#define MAX_NODES_PER_LAYER 160

static struct ggml_tensor *matmul(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *x) {
    if (w->type != GGML_TYPE_F32) w = ggml_cast(g->ctx, w, GGML_TYPE_F32);
    return ggml_mul_mat(g->ctx, w, x);
}

static struct ggml_tensor *linear(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *bias,
                                  struct ggml_tensor *x) {
    x = matmul(g, w, x);
    return bias ? ggml_add(g->ctx, x, bias) : x;
}

static struct ggml_tensor *norm(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *bias,
                                struct ggml_tensor *x) {
    float eps = g->model->hp.norm_eps;
    x = g->model->family->norm == QKV_NORM_RMS ? ggml_rms_norm(g->ctx, x, eps)
                                               : ggml_norm(g->ctx, x, eps);
    x = ggml_mul(g->ctx, x, w);
    return bias ? ggml_add(g->ctx, x, bias) : x;
}

/* x · sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x³): the tanh form. ggml's own GELU is a table of F16 values. */
static struct ggml_tensor *gelu_tanh(qkv_graph *g, struct ggml_tensor *x) {
    const float c = 2 * sqrtf(2 / 3.14159265358979f);
    struct ggml_tensor *u = ggml_scale_bias(g->ctx, ggml_sqr(g->ctx, x), 0.044715f * c, c);
    u = ggml_mul(g->ctx, u, x);
    return ggml_mul(g->ctx, x, ggml_sigmoid(g->ctx, u));
}

static struct ggml_tensor *activate(qkv_graph *g, struct ggml_tensor *x) {
    return g->model->family->activation == QKV_ACT_SILU ? ggml_silu(g->ctx, x) : gelu_tanh(g, x);
}

/* ---- attention ---- */

typedef struct qkv_heads {
    struct ggml_tensor *q, *k, *v; /* [d, H, T, B], [d, G, T, B] twice */
} qkv_heads;

/* Rows [offset, offset + heads·d) of a projected tensor as [d, heads, T, B]. */
static struct ggml_tensor *as_heads(qkv_graph *g, struct ggml_tensor *x, int64_t offset,
                                    int64_t heads) {
    int64_t d = g->model->hp.head_dim;
    if (x->ne[0] != heads * d) {
        x = ggml_view_2d(g->ctx, x, heads * d, x->ne[1], x->nb[1], (size_t)offset * sizeof(float));
        x = ggml_cont(g->ctx, x);
    }
    return ggml_reshape_4d(g->ctx, x, d, heads, g->n_tokens, g->n_batch);
}

static qkv_heads project(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    const qkv_hparams *hp = &g->model->hp;
    int64_t H = hp->n_head, G = hp->n_kv_head, d = hp->head_dim;
    qkv_heads p;
    if (LAYER(g, il, QKV)) {
        struct ggml_tensor *s = linear(g, LAYER(g, il, QKV), LAYER(g, il, QKV_BIAS), x);
        p.q = as_heads(g, s, 0, H);
        p.k = as_heads(g, s, H * d, G);
        p.v = as_heads(g, s, (H + G) * d, G);
    } else {
        p.q = as_heads(g, linear(g, LAYER(g, il, Q), LAYER(g, il, Q_BIAS), x), 0, H);
        p.k = as_heads(g, linear(g, LAYER(g, il, K), LAYER(g, il, K_BIAS), x), 0, G);
        p.v = as_heads(g, linear(g, LAYER(g, il, V), LAYER(g, il, V_BIAS), x), 0, G);
    }
    p.q = qkv_tap(g, QKV_SITE_Q, il, p.q);
    p.k = qkv_tap(g, QKV_SITE_K, il, p.k);
    p.v = qkv_tap(g, QKV_SITE_V, il, p.v);
    return p;
}

static struct ggml_tensor *rotate(qkv_graph *g, struct ggml_tensor *x) {
    const qkv_hparams *hp = &g->model->hp;
    if (hp->rope_dims == 0) return x;
    int mode = g->model->family->rope_pairs == QKV_ROPE_HALVES ? GGML_ROPE_TYPE_NEOX
                                                               : GGML_ROPE_TYPE_NORMAL;
    return ggml_rope_ext(g->ctx, x, g->in_position, g->in_divisors, hp->rope_dims, mode, 0,
                         hp->rope_base, 1, 0, hp->rope_attn_factor, 0, 0);
}

/* scores = scale · k·q, pattern = softmax(scores + mask), z = pattern · v */
static struct ggml_tensor *attend(qkv_graph *g, int32_t il, qkv_heads p) {
    struct ggml_context *ctx = g->ctx;
    struct ggml_tensor *q = qkv_tap(g, QKV_SITE_Q_ROT, il, rotate(g, p.q)); // [d, H, T, B]
    struct ggml_tensor *k = qkv_tap(g, QKV_SITE_K_ROT, il, rotate(g, p.k)); // [d, G, T, B]

    q = ggml_permute(ctx, q, 0, 2, 1, 3);                 // [d, T, H, B]
    k = ggml_permute(ctx, k, 0, 2, 1, 3);                 // [d, T, G, B]
    struct ggml_tensor *scores = ggml_mul_mat(ctx, k, q); // [T, T, H, B]: keys, queries
    scores = ggml_scale(ctx, scores, g->model->hp.attn_scale);
    scores = qkv_tap(g, QKV_SITE_SCORES, il, scores);

    struct ggml_tensor *pattern = ggml_soft_max_ext(ctx, scores, g->in_mask, 1, 0); // [T, T, H, B]
    pattern = qkv_tap(g, QKV_SITE_PATTERN, il, pattern);

    struct ggml_tensor *v = ggml_cont(ctx, ggml_permute(ctx, p.v, 1, 2, 0, 3)); // [T, d, G, B]
    struct ggml_tensor *z = ggml_mul_mat(ctx, v, pattern);                      // [d, T, H, B]
    z = ggml_cont(ctx, ggml_permute(ctx, z, 0, 2, 1, 3));                       // [d, H, T, B]
    return qkv_tap(g, QKV_SITE_Z, il, z);
}

static struct ggml_tensor *attention(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    const qkv_hparams *hp = &g->model->hp;
    struct ggml_tensor *z = attend(g, il, project(g, il, x));
    z = ggml_reshape_2d(g->ctx, z, (int64_t)hp->head_dim * hp->n_head, g->n_tokens * g->n_batch);
    return linear(g, LAYER(g, il, O), LAYER(g, il, O_BIAS), z); // [D, T·B]
}

/* ---- the block ---- */

static struct ggml_tensor *feed_forward(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    struct ggml_tensor *up = linear(g, LAYER(g, il, UP), LAYER(g, il, UP_BIAS), x); // [F, T·B]
    if (g->model->family->gated_mlp) {
        struct ggml_tensor *gate = linear(g, LAYER(g, il, GATE), LAYER(g, il, GATE_BIAS), x);
        up = ggml_mul(g->ctx, activate(g, gate), up);
    } else {
        up = activate(g, up);
    }
    return linear(g, LAYER(g, il, DOWN), LAYER(g, il, DOWN_BIAS), up); // [D, T·B]
}

static struct ggml_tensor *layer(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    x = qkv_tap(g, QKV_SITE_RESID_PRE, il, x); // [D, T·B]

    struct ggml_tensor *a = norm(g, LAYER(g, il, ATTN_NORM), LAYER(g, il, ATTN_NORM_BIAS), x);
    x = ggml_add(g->ctx, x, qkv_tap(g, QKV_SITE_ATTN_OUT, il, attention(g, il, a)));

    struct ggml_tensor *m = norm(g, LAYER(g, il, FFN_NORM), LAYER(g, il, FFN_NORM_BIAS), x);
    x = ggml_add(g->ctx, x, qkv_tap(g, QKV_SITE_MLP_OUT, il, feed_forward(g, il, m)));

    return qkv_tap(g, QKV_SITE_RESID_POST, il, x);
}

/* ---- ends ---- */

static struct ggml_tensor *input(qkv_graph *g, enum ggml_type type, int64_t n0, int64_t n1) {
    struct ggml_tensor *t = ggml_new_tensor_2d(g->ctx, type, n0, n1);
    ggml_set_input(t);
    return t;
}

/* What layer `from` starts with: embeddings, or the residual stream of an earlier pass. The same for every variant. */
static struct ggml_tensor *first_residual(qkv_graph *g) {
    const qkv_hparams *hp = &g->model->hp;
    struct ggml_tensor *x;
    if (g->from > 0) {
        g->in_resid = x = input(g, GGML_TYPE_F32, hp->n_embd, g->n_tokens);
    } else {
        g->in_tokens = input(g, GGML_TYPE_I32, g->n_tokens, 1);
        x = ggml_get_rows(g->ctx, MODEL(g, TOKEN_EMBD), g->in_tokens); // [D, T]
        if (MODEL(g, POSITION_EMBD))
            x = ggml_add(g->ctx, x, ggml_get_rows(g->ctx, MODEL(g, POSITION_EMBD), g->in_position));
    }
    if (g->n_batch > 1) x = ggml_repeat_4d(g->ctx, x, hp->n_embd, g->n_tokens * g->n_batch, 1, 1);
    return x;
}

static int32_t last_layer_kept(const qkv_graph *g) {
    int32_t last = g->from;
    for (int32_t il = g->from; il <= g->model->hp.n_layer; il++) {
        for (int site = 0; site < QKV_SITE_COUNT; site++) {
            if (qkv_graph_keeps(g, (qkv_site)site, il)) last = il;
        }
    }
    return last;
}

size_t qkv_graph_max_nodes(const qkv_model *model) {
    return (size_t)(model->hp.n_layer + 1) * MAX_NODES_PER_LAYER;
}

static int allocate_context(qkv_graph *g, qkv_error *err) {
    size_t nodes = qkv_graph_max_nodes(g->model);
    struct ggml_init_params params = {
        .mem_size = nodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(nodes, false),
        .no_alloc = true,
    };
    g->ctx = ggml_init(params);
    if (!g->ctx) return qkv_fail_memory(err);
    g->cgraph = ggml_new_graph_custom(g->ctx, nodes, false);
    return QKV_OK;
}

int qkv_graph_build(qkv_graph *g, qkv_error *err) {
    const qkv_hparams *hp = &g->model->hp;
    int status = allocate_context(g, err);
    if (status != QKV_OK) return status;
    g->in_position = input(g, GGML_TYPE_I32, g->n_tokens, 1);
    g->in_mask = input(g, GGML_TYPE_F32, g->n_tokens, g->n_tokens);
    if (hp->rope_divisors) g->in_divisors = input(g, GGML_TYPE_F32, hp->rope_dims / 2, 1);

    int32_t last = last_layer_kept(g);
    struct ggml_tensor *x = first_residual(g);
    for (int32_t il = g->from; il < hp->n_layer && il <= last; il++) x = layer(g, il, x);
    if (last == hp->n_layer) {
        /* What an edit of the logits alone starts from; no layer's site, so nothing can edit it. */
        if (qkv_graph_keeps(g, QKV_SITE_RESID_PRE, hp->n_layer))
            qkv_graph_keep(g, QKV_SITE_RESID_PRE, hp->n_layer, x);
        x = norm(g, MODEL(g, OUTPUT_NORM), MODEL(g, OUTPUT_NORM_BIAS), x);
        qkv_tap(g, QKV_SITE_LOGITS, hp->n_layer, matmul(g, g->model->output, x)); // [V, T·B]
    }
    return g->out_of_memory ? qkv_fail_memory(err) : QKV_OK;
}
