/*
 * The forward pass, as ordinary graph-building code. What the families differ in is read from their
 * description; where the pass can be read or changed it calls qkv_tap.
 *
 * The batch is an axis of its own in every product, so that each variant is multiplied by itself: a
 * result does not depend, to the last bit, on what else was in the batch.
 *
 * All arithmetic is in F32. A weight of another type is turned into F32 before its product: ggml's
 * own kernels would round the activations to the weight's type instead, by an amount that depends
 * on the length of the prompt.
 */
#include <assert.h>
#include <math.h>

#include "run/graph.h"

#define LAYER(g, il, slot) ((g)->model->layers[il].w[QKV_LAYER_##slot])
#define MODEL(g, slot) ((g)->model->w[QKV_MODEL_##slot])

/* Tensors that one layer, and one block of queries in it, add to the graph at most; with taps. */
#define MAX_NODES_PER_LAYER 160
#define MAX_NODES_PER_BLOCK 24

static struct ggml_tensor *matmul(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *x) {
    if (w->type != GGML_TYPE_F32) {
        struct ggml_tensor *copy = qkv_dense_find(g->dense, w);
        w = copy ? copy : ggml_cast(g->ctx, w, GGML_TYPE_F32);
    }
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

/* x · sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x³): the tanh form. ggml's own GELU is a table of
 * F16 values. */
static struct ggml_tensor *gelu_tanh(qkv_graph *g, struct ggml_tensor *x) {
    const float c = 2 * sqrtf(2 / 3.14159265358979f);
    struct ggml_tensor *u = ggml_scale_bias(g->ctx, ggml_sqr(g->ctx, x), 0.044715f * c, c);
    u = ggml_mul(g->ctx, u, x);
    return ggml_mul(g->ctx, x, ggml_sigmoid(g->ctx, u));
}

static struct ggml_tensor *activate(qkv_graph *g, struct ggml_tensor *x) {
    return g->model->family->activation == QKV_ACT_SILU ? ggml_silu(g->ctx, x) : gelu_tanh(g, x);
}

/* The inputs of a pass are the same for all its variants. */
static struct ggml_tensor *for_each_variant(qkv_graph *g, struct ggml_tensor *x) {
    if (g->n_batch == 1) return x;
    return ggml_repeat_4d(g->ctx, x, x->ne[0], x->ne[1], x->ne[2], g->n_batch);
}

static struct ggml_tensor *input(qkv_graph *g, enum ggml_type type, int64_t n0, int64_t n1,
                                 int64_t n2) {
    struct ggml_tensor *t = ggml_new_tensor_3d(g->ctx, type, n0, n1, n2);
    ggml_set_input(t);
    return t;
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
        x = ggml_view_3d(g->ctx, x, heads * d, x->ne[1], x->ne[2], x->nb[1], x->nb[2],
                         (size_t)offset * sizeof(float));
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
    return p;
}

/* The heads that an earlier pass projected. */
static qkv_heads given_heads(qkv_graph *g) {
    const qkv_hparams *hp = &g->model->hp;
    g->in_q = input(g, GGML_TYPE_F32, hp->head_dim, hp->n_head, g->n_tokens);
    g->in_k = input(g, GGML_TYPE_F32, hp->head_dim, hp->n_kv_head, g->n_tokens);
    g->in_v = input(g, GGML_TYPE_F32, hp->head_dim, hp->n_kv_head, g->n_tokens);
    return (qkv_heads){for_each_variant(g, g->in_q), for_each_variant(g, g->in_k),
                       for_each_variant(g, g->in_v)};
}

static qkv_heads edited_heads(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    qkv_heads p = g->start == QKV_START_HEADS && il == g->from ? given_heads(g) : project(g, il, x);
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

/* [d, heads, T, B] to [d, T, n, B]: heads from `first` on. Contiguous, which is what BLAS takes. */
static struct ggml_tensor *by_head(qkv_graph *g, struct ggml_tensor *x, int64_t first, int64_t n) {
    if (n != x->ne[1])
        x = ggml_view_4d(g->ctx, x, x->ne[0], n, x->ne[2], x->ne[3], x->nb[1], x->nb[2], x->nb[3],
                         (size_t)first * x->nb[1]);
    return ggml_cont(g->ctx, ggml_permute(g->ctx, x, 0, 2, 1, 3));
}

/* A window into the band of qkv_mask_fill: `rows` queries from `first` on, `keys` keys. */
static struct ggml_tensor *mask_of(qkv_graph *g, int64_t first, int64_t rows, int64_t keys) {
    struct ggml_tensor *band = g->in_mask;
    if (band->ne[0] == keys) return band; /* one block */
    size_t offset = (size_t)(g->n_tokens - first) * sizeof(float);
    return ggml_cont(g->ctx, ggml_view_2d(g->ctx, band, keys, rows, band->nb[1], offset));
}

/* Rows [first, first + rows) of x along its second axis. */
static struct ggml_tensor *rows_of(qkv_graph *g, struct ggml_tensor *x, int64_t first,
                                   int64_t rows) {
    if (rows == x->ne[1]) return x;
    return ggml_view_4d(g->ctx, x, x->ne[0], rows, x->ne[2], x->ne[3], x->nb[1], x->nb[2], x->nb[3],
                        (size_t)first * x->nb[1]);
}

/* scores = scale · k·q and pattern = softmax(scores + mask) for one block of queries. */
static struct ggml_tensor *pattern_of(qkv_graph *g, int32_t il, struct ggml_tensor *q,
                                      struct ggml_tensor *k, qkv_part part) {
    struct ggml_tensor *scores = ggml_mul_mat(g->ctx, k, q); // [keys, rows, H, B]
    scores = ggml_scale(g->ctx, scores, g->model->hp.attn_scale);
    scores = qkv_tap_part(g, QKV_SITE_SCORES, il, scores, part);
    struct ggml_tensor *mask = mask_of(g, part.first_row, q->ne[1], k->ne[1]);
    struct ggml_tensor *pattern =
        ggml_soft_max_ext(g->ctx, scores, mask, 1, 0); // [keys, rows, H, B]
    return qkv_tap_part(g, QKV_SITE_PATTERN, il, pattern, part);
}

static int map_is_observed(const qkv_graph *g, int32_t il) {
    return qkv_graph_edits(g, QKV_SITE_SCORES, il) || qkv_graph_edits(g, QKV_SITE_PATTERN, il) ||
           qkv_graph_keeps(g, QKV_SITE_SCORES, il) || qkv_graph_keeps(g, QKV_SITE_PATTERN, il);
}

/* z = pattern · v, block by block, so that no more than block_rows rows of a map exist at a time.
 * Where nobody looks at the map, keys that the whole block cannot see are left out. Without v, only
 * the map is wanted. */
static struct ggml_tensor *attend_in_blocks(qkv_graph *g, int32_t il, struct ggml_tensor *q,
                                            struct ggml_tensor *k, struct ggml_tensor *v,
                                            qkv_part part) {
    struct ggml_context *ctx = g->ctx;
    int64_t T = g->n_tokens;
    int whole_rows = map_is_observed(g, il);
    struct ggml_tensor *z = NULL; // [d, T, H, B]
    if (v && g->block_rows < T) z = ggml_dup(ctx, q);
    /* From the last block to the first: later blocks see more keys, and memory that the largest one
     * has used fits the others. */
    int64_t last = (T - 1) / g->block_rows * g->block_rows;
    for (int64_t first = last; first >= 0; first -= g->block_rows) {
        int64_t rows = T - first < g->block_rows ? T - first : g->block_rows;
        int64_t keys = whole_rows || rows == T ? T : first + rows;
        part.first_row = first;
        struct ggml_tensor *kb = rows_of(g, k, 0, keys), *qb = rows_of(g, q, first, rows);
        /* Contiguous for BLAS: copying is cheap beside a product that goes elsewhere. */
        if (kb != k) kb = ggml_cont(ctx, kb);
        if (qb != q) qb = ggml_cont(ctx, qb);
        struct ggml_tensor *pattern = pattern_of(g, il, qb, kb, part);
        if (!v) continue;
        struct ggml_tensor *vb = keys == T
                                     ? v
                                     : ggml_view_4d(ctx, v, keys, v->ne[1], v->ne[2], v->ne[3],
                                                    v->nb[1], v->nb[2], v->nb[3], 0);
        if (vb != v) vb = ggml_cont(ctx, vb);
        struct ggml_tensor *zb = ggml_mul_mat(ctx, vb, pattern); // [d, rows, H, B]
        if (rows == T) return zb;
        assert(z);
        z = ggml_set_inplace(ctx, z, zb, z->nb[1], z->nb[2], z->nb[3], (size_t)first * z->nb[1]);
    }
    return z;
}

static struct ggml_tensor *attend(qkv_graph *g, int32_t il, qkv_heads p) {
    struct ggml_context *ctx = g->ctx;
    struct ggml_tensor *q = qkv_tap(g, QKV_SITE_Q_ROT, il, rotate(g, p.q)); // [d, H, T, B]
    struct ggml_tensor *k = qkv_tap(g, QKV_SITE_K_ROT, il, rotate(g, p.k)); // [d, G, T, B]

    int64_t H = g->model->hp.n_head, first = 0, n = H;
    if (g->n_heads && il == g->from) first = g->first_head, n = g->n_heads;
    int64_t shared_by = H / k->ne[1]; /* query heads that look at one head of k */
    int64_t n_keys = n > shared_by ? n / shared_by : 1;
    q = by_head(g, q, first, n);                  // [d, T, H, B]
    k = by_head(g, k, first / shared_by, n_keys); // [d, T, G, B]
    qkv_part part = {.first_head = (int32_t)first};
    if (n < H) { /* the pass ends with the pattern of these heads */
        attend_in_blocks(g, il, q, k, NULL, part);
        return NULL;
    }
    struct ggml_tensor *v = ggml_cont(ctx, ggml_permute(ctx, p.v, 1, 2, 0, 3)); // [T, d, G, B]
    struct ggml_tensor *z = attend_in_blocks(g, il, q, k, v, part);
    z = ggml_cont(ctx, ggml_permute(ctx, z, 0, 2, 1, 3)); // [d, H, T, B]
    return qkv_tap(g, QKV_SITE_Z, il, z);
}

static struct ggml_tensor *attention(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    const qkv_hparams *hp = &g->model->hp;
    struct ggml_tensor *z = attend(g, il, edited_heads(g, il, x));
    if (!z) return NULL;
    z = ggml_reshape_3d(g->ctx, z, (int64_t)hp->head_dim * hp->n_head, g->n_tokens, g->n_batch);
    return linear(g, LAYER(g, il, O), LAYER(g, il, O_BIAS), z); // [D, T, B]
}

/* ---- the block ---- */

static struct ggml_tensor *feed_forward(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    struct ggml_tensor *up = linear(g, LAYER(g, il, UP), LAYER(g, il, UP_BIAS), x); // [F, T, B]
    if (g->model->family->gated_mlp) {
        struct ggml_tensor *gate = linear(g, LAYER(g, il, GATE), LAYER(g, il, GATE_BIAS), x);
        up = ggml_mul(g->ctx, activate(g, gate), up);
    } else {
        up = activate(g, up);
    }
    return linear(g, LAYER(g, il, DOWN), LAYER(g, il, DOWN_BIAS), up); // [D, T, B]
}

static struct ggml_tensor *layer(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    x = qkv_tap(g, QKV_SITE_RESID_PRE, il, x); // [D, T, B]

    struct ggml_tensor *a = norm(g, LAYER(g, il, ATTN_NORM), LAYER(g, il, ATTN_NORM_BIAS), x);
    a = attention(g, il, a);
    if (!a) return x;
    x = ggml_add(g->ctx, x, qkv_tap(g, QKV_SITE_ATTN_OUT, il, a));

    struct ggml_tensor *m = norm(g, LAYER(g, il, FFN_NORM), LAYER(g, il, FFN_NORM_BIAS), x);
    x = ggml_add(g->ctx, x, qkv_tap(g, QKV_SITE_MLP_OUT, il, feed_forward(g, il, m)));

    return qkv_tap(g, QKV_SITE_RESID_POST, il, x);
}

/* ---- ends ---- */

/* What layer `from` starts with: embeddings, or the residual stream of an earlier pass. */
static struct ggml_tensor *first_residual(qkv_graph *g) {
    const qkv_hparams *hp = &g->model->hp;
    struct ggml_tensor *x;
    if (g->start != QKV_START_TOKENS) {
        g->in_resid = x = input(g, GGML_TYPE_F32, hp->n_embd, g->n_tokens, 1);
    } else {
        g->in_tokens = input(g, GGML_TYPE_I32, g->n_tokens, 1, 1);
        x = ggml_get_rows(g->ctx, MODEL(g, TOKEN_EMBD), g->in_tokens); // [D, T]
        if (MODEL(g, POSITION_EMBD))
            x = ggml_add(g->ctx, x, ggml_get_rows(g->ctx, MODEL(g, POSITION_EMBD), g->in_position));
    }
    x = for_each_variant(g, x);
    return ggml_reshape_3d(g->ctx, x, hp->n_embd, g->n_tokens, g->n_batch);
}

static int64_t n_logit_rows(const qkv_graph *g) {
    int64_t n = 0;
    for (int64_t t = 0; t < g->n_tokens; t++) n += !g->logit_rows || g->logit_rows[t];
    return n;
}

/* Only the tokens whose logits are wanted are projected to the vocabulary. */
static void output(qkv_graph *g, struct ggml_tensor *x) {
    int32_t n_layer = g->model->hp.n_layer;
    /* What an edit of the logits alone starts from; no layer's site, so nothing can edit it. */
    if (qkv_graph_keeps(g, QKV_SITE_RESID_PRE, n_layer))
        qkv_graph_keep(g, QKV_SITE_RESID_PRE, n_layer, x);
    if (!qkv_graph_keeps(g, QKV_SITE_LOGITS, n_layer)) return;
    int64_t rows = n_logit_rows(g);
    if (rows < g->n_tokens) {
        g->in_rows = input(g, GGML_TYPE_I32, rows * g->n_batch, 1, 1);
        x = ggml_reshape_2d(g->ctx, x, x->ne[0], g->n_tokens * g->n_batch);
        x = ggml_get_rows(g->ctx, x, g->in_rows);
        x = ggml_reshape_3d(g->ctx, x, x->ne[0], rows, g->n_batch);
    }
    x = norm(g, MODEL(g, OUTPUT_NORM), MODEL(g, OUTPUT_NORM_BIAS), x);
    qkv_tap(g, QKV_SITE_LOGITS, n_layer, matmul(g, g->model->output, x)); // [V, rows, B]
}

static int32_t last_layer_kept(const qkv_graph *g) {
    int32_t last = g->from;
    for (int32_t il = g->from; il <= g->model->hp.n_layer; il++) {
        for (int site = 0; site < QKV_SITE_COUNT; site++) {
            if (g->keep[(size_t)il * QKV_SITE_COUNT + (size_t)site]) last = il;
        }
    }
    return last;
}

size_t qkv_graph_max_nodes(const qkv_graph *g) {
    size_t blocks = (size_t)((g->n_tokens + g->block_rows - 1) / g->block_rows);
    return (size_t)(g->model->hp.n_layer + 1) *
           (MAX_NODES_PER_LAYER + blocks * MAX_NODES_PER_BLOCK);
}

static int allocate_context(qkv_graph *g, qkv_error *err) {
    size_t nodes = qkv_graph_max_nodes(g);
    struct ggml_init_params params = {
        .mem_size = nodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(nodes, false),
        .no_alloc = true,
    };
    g->ctx = ggml_init(params);
    if (!g->ctx) return qkv_fail_memory(err);
    g->cgraph = ggml_new_graph_custom(g->ctx, nodes, false);
    return QKV_OK;
}

void qkv_mask_fill(float *band, int64_t n_tokens, int64_t block_rows, int32_t window) {
    int64_t width = block_rows < n_tokens ? 2 * n_tokens : n_tokens;
    int64_t origin = block_rows < n_tokens ? n_tokens : 0; /* column of the first row's own key */
    for (int64_t i = 0; i < block_rows; i++) {
        for (int64_t c = 0; c < width; c++) {
            int64_t back = origin + i - c; /* how far behind its query the key is */
            int visible = back >= 0 && (window == 0 || back < window);
            band[i * width + c] = visible ? 0 : -INFINITY;
        }
    }
}

int qkv_graph_build(qkv_graph *g, qkv_error *err) {
    const qkv_hparams *hp = &g->model->hp;
    int status = allocate_context(g, err);
    if (status != QKV_OK) return status;
    int one_block = g->block_rows >= g->n_tokens;
    g->in_position = input(g, GGML_TYPE_I32, g->n_tokens, 1, 1);
    g->in_mask = one_block ? input(g, GGML_TYPE_F32, g->n_tokens, g->n_tokens, 1)
                           : input(g, GGML_TYPE_F32, 2 * g->n_tokens, g->block_rows, 1);
    if (hp->rope_divisors) g->in_divisors = input(g, GGML_TYPE_F32, hp->rope_dims / 2, 1, 1);

    int32_t last = last_layer_kept(g);
    struct ggml_tensor *x = first_residual(g);
    for (int32_t il = g->from; il < hp->n_layer && il <= last; il++) x = layer(g, il, x);
    if (last == hp->n_layer) output(g, x);
    return g->out_of_memory ? qkv_fail_memory(err) : QKV_OK;
}

qkv_cost qkv_graph_cost(const qkv_graph *g) {
    qkv_cost cost = {0};
    for (int i = 0; i < ggml_graph_n_nodes(g->cgraph); i++) {
        const struct ggml_tensor *node = ggml_graph_node(g->cgraph, i);
        if (node->op != GGML_OP_MUL_MAT) continue;
        const struct ggml_tensor *w = node->src[0];
        if (w->op == GGML_OP_CPY) w = w->src[0]; /* a weight turned into F32 */
        int is_weight = w->buffer != NULL && ggml_backend_buffer_get_usage(w->buffer) ==
                                                 GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
        cost.flop += 2.0 * (double)ggml_nelements(node) * (double)node->src[0]->ne[0];
        if (is_weight) {
            cost.n_matmul++;
            cost.bytes += (double)ggml_nbytes(w);
        } else {
            cost.n_attention++;
        }
    }
    return cost;
}
