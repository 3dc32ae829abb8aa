/*
 * The forward pass, as ordinary graph-building code. What the families differ in is read from their
 * description; where the pass can be read or changed it calls qkv_tap.
 *
 * A batch of variants goes through every product together. No column of a product sees another: a
 * result does not depend, to the last bit, on what else was in the batch.
 *
 * All arithmetic is in F32. A weight of another type is turned into F32 for its product
 * (kernel/product.h): ggml's own kernels would round the activations to the weight's type instead,
 * by an amount that depends on the length of the prompt.
 */
#include <math.h>

#include "base/first_key.h"
#include "base/memory.h"
#include "run/graph/build.h"
#include "run/graph/head_input.h"
#include "run/graph/mixer.h"

/* Tensors that one layer, and one block of queries in it, add to the graph at most; with taps. */
#define MAX_NODES_PER_LAYER 192
#define MAX_NODES_PER_BLOCK 56
/* And where heads read copies of the input. */
#define MAX_NODES_OF_COPIES 48

/* ---- tokens whose logits are wanted ---- */

static int64_t n_logit_rows(const qkv_graph *g) {
    int64_t n = 0;
    for (int64_t t = 0; t < g->n_tokens; t++) n += !g->logit_rows || g->logit_rows[t];
    return n;
}

/* [n, T, B] to [n, rows, B] */
struct ggml_tensor *qkv_wanted_rows(qkv_graph *g, struct ggml_tensor *x) {
    const int64_t rows = n_logit_rows(g);
    if (!g->in_rows) g->in_rows = qkv_input(g, GGML_TYPE_I32, rows * g->n_batch, 1, 1);
    x = ggml_reshape_2d(g->ctx, x, x->ne[0], g->n_tokens * g->n_batch);
    x = ggml_get_rows(g->ctx, x, g->in_rows);
    return ggml_reshape_3d(g->ctx, x, x->ne[0], rows, g->n_batch);
}

/* Is anything after the layers kept? */
static int keeps_output(const qkv_graph *g) {
    const int32_t n_layer = g->model->hp.n_layer;
    return qkv_graph_keeps(g, QKV_SITE_FINAL_NORM, n_layer) ||
           qkv_graph_keeps(g, QKV_SITE_LOGITS, n_layer);
}

/* After the last layer's attention the other tokens are not needed, unless something there is
 * kept or edited. */
static int only_wanted_rows(const qkv_graph *g, int32_t il) {
    const int32_t n_layer = g->model->hp.n_layer;
    if (il != n_layer - 1 || n_logit_rows(g) == g->n_tokens) return 0;
    for (int site = 0; site < QKV_SITE_COUNT; site++) {
        if (qkv_site_follows_attention((qkv_site)site) &&
            (g->keep[(size_t)il * QKV_SITE_COUNT + (size_t)site] ||
             qkv_graph_edits(g, (qkv_site)site, il)))
            return 0;
    }
    return keeps_output(g) && !qkv_graph_keeps(g, QKV_SITE_RESID_PRE, n_layer);
}

/* ---- the block ---- */

/* A block's output as it is added to the residual stream. */
static struct ggml_tensor *added(qkv_graph *g, struct ggml_tensor *post_norm,
                                 struct ggml_tensor *x) {
    return qkv_scaled(g, qkv_norm(g, post_norm, NULL, x), g->model->hp.residual_scale);
}

/* Beside attention and without a norm of its own, the feed-forward has attention's first one. */
static struct ggml_tensor *feed_forward_input(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    if (g->model->hp.parallel && !LAYER(g, il, FFN_NORM))
        return qkv_norm(g, LAYER(g, il, ATTN_NORM), LAYER(g, il, ATTN_NORM_BIAS), x);
    return qkv_norm(g, LAYER(g, il, FFN_NORM), LAYER(g, il, FFN_NORM_BIAS), x);
}

/* What attention, or a mixer, or both add to x; `a` NULL: the layer has neither. */
typedef struct mixed_tokens {
    struct ggml_tensor *x, *a;
} mixed_tokens;

/* Returns 0 where the pass ends with the maps. Where only some tokens are wanted after it, x has these. */
static int mix_tokens(qkv_graph *g, int32_t il, mixed_tokens *t) {
    const int mixes = qkv_layer_has(&g->model->hp, il, QKV_PART_MIXER);
    struct ggml_tensor *z = NULL, *y = NULL, *a = NULL;
    if (qkv_layer_has(&g->model->hp, il, QKV_PART_ATTENTION)) {
        z = qkv_attention(g, il, t->x);
        if (!z) return 0;
    }
    if (mixes) y = qkv_mixer(g, il, t->x);
    g->behind_attention = il == g->model->hp.n_layer - 1;
    if (only_wanted_rows(g, il)) {
        if (z) z = qkv_wanted_rows(g, z);
        if (y) y = qkv_wanted_rows(g, y);
        t->x = qkv_wanted_rows(g, t->x);
    }
    if (z) a = qkv_linear(g, LAYER(g, il, O), LAYER(g, il, O_BIAS), z); // [D, T, B]
    if (y) y = qkv_mixer_output(g, il, y);
    a = a && y ? ggml_add(g->ctx, a, y) : a ? a : y;
    if (a) a = qkv_tap(g, QKV_SITE_ATTN_OUT, il, added(g, LAYER(g, il, POST_ATTN_NORM), a));
    t->a = a;
    return 1;
}

/* `mid` and what the feed-forward adds to it, if the layer has one. */
static struct ggml_tensor *feed_forward(qkv_graph *g, int32_t il, struct ggml_tensor *x,
                                        struct ggml_tensor *mid) {
    if (!qkv_layer_has(&g->model->hp, il, QKV_PART_FEED_FORWARD)) return mid;
    struct ggml_tensor *m = feed_forward_input(g, il, g->model->hp.parallel ? x : mid);
    m = added(g, LAYER(g, il, POST_FFN_NORM), qkv_feed_forward(g, il, m));
    return ggml_add(g->ctx, mid, qkv_tap(g, QKV_SITE_MLP_OUT, il, m));
}

static struct ggml_tensor *layer(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    x = qkv_tap(g, QKV_SITE_RESID_PRE, il, x); // [D, T, B]

    mixed_tokens t = {.x = x};
    if (!mix_tokens(g, il, &t)) return x;
    x = t.x;
    struct ggml_tensor *mid = t.a ? ggml_add(g->ctx, x, t.a) : x;
    mid = qkv_norm(g, LAYER(g, il, ATTN_OUT_NORM), LAYER(g, il, ATTN_OUT_NORM_BIAS), mid);
    x = feed_forward(g, il, x, mid);
    x = qkv_norm(g, LAYER(g, il, LAYER_OUT_NORM), LAYER(g, il, LAYER_OUT_NORM_BIAS), x);
    if (LAYER(g, il, OWN_GATE)) x = ggml_add(g->ctx, x, qkv_own_embedding(g, il, x));
    if (LAYER(g, il, LAYER_SCALE)) x = ggml_mul(g->ctx, x, LAYER(g, il, LAYER_SCALE));

    return qkv_tap(g, QKV_SITE_RESID_POST, il, x);
}

/* ---- ends ---- */

static struct ggml_tensor *embeddings(qkv_graph *g) {
    struct ggml_context *ctx = g->ctx;
    struct ggml_tensor *x = qkv_token_embeddings(g);
    if (MODEL(g, TOKEN_TYPES)) { /* the segments of a pair of texts */
        g->in_token_type = qkv_input(g, GGML_TYPE_I32, g->n_tokens, 1, 1);
        x = ggml_add(ctx, x, ggml_get_rows(ctx, MODEL(g, TOKEN_TYPES), g->in_token_type));
    }
    if (MODEL(g, POSITION_EMBD))
        x = ggml_add(ctx, x, ggml_get_rows(ctx, MODEL(g, POSITION_EMBD), g->in_position));
    return qkv_norm(g, MODEL(g, EMBD_NORM), MODEL(g, EMBD_NORM_BIAS), x);
}

/* What layer `from` starts with: embeddings, or the residual stream of an earlier pass. */
static struct ggml_tensor *first_residual(qkv_graph *g) {
    const qkv_hparams *hp = &g->model->hp;
    struct ggml_tensor *x;
    if (g->start == QKV_START_TOKENS)
        x = embeddings(g);
    else
        g->in_resid = x = qkv_input(g, GGML_TYPE_F32, hp->n_embd, g->n_tokens, 1);
    if (!g->step) x = qkv_for_each_variant(g, x);
    return ggml_reshape_3d(g->ctx, x, hp->n_embd, g->n_tokens, g->n_batch);
}

/* Members of a step that have been as the first one so far go their own ways from layer il on. */
static struct ggml_tensor *with_joining(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    int64_t n = g->n_batch;
    while (n < g->n_members && g->step->joins[n] <= il) n++;
    if (n == g->n_batch) return x;
    struct ggml_tensor *first =
        ggml_view_3d(g->ctx, x, x->ne[0], x->ne[1], 1, x->nb[1], x->nb[2], 0);
    first = ggml_repeat_4d(g->ctx, first, x->ne[0], x->ne[1], n - g->n_batch, 1);
    g->n_batch = n;
    return ggml_concat(g->ctx, x, first, 2);
}

/* Only the tokens whose logits are wanted are projected to the vocabulary. */
static void output(qkv_graph *g, struct ggml_tensor *x) {
    int32_t n_layer = g->model->hp.n_layer;
    /* What an edit of the logits alone starts from; no layer's site, so nothing can edit it. */
    if (qkv_graph_keeps(g, QKV_SITE_RESID_PRE, n_layer))
        qkv_graph_keep(g, QKV_SITE_RESID_PRE, n_layer, x);
    if (!keeps_output(g)) return;
    if (x->ne[1] != n_logit_rows(g)) x = qkv_wanted_rows(g, x);
    x = qkv_norm(g, MODEL(g, OUTPUT_NORM), MODEL(g, OUTPUT_NORM_BIAS), x);
    x = qkv_tap(g, QKV_SITE_FINAL_NORM, n_layer, x); // [D, rows, B]
    if (!qkv_graph_keeps(g, QKV_SITE_LOGITS, n_layer)) return;
    x = qkv_linear(g, g->model->output, MODEL(g, OUTPUT_BIAS), x); // [V, rows, B]
    x = qkv_softcap(g, qkv_scaled(g, x, g->model->hp.logit_scale), g->model->hp.logit_softcap);
    qkv_tap(g, QKV_SITE_LOGITS, n_layer, x);
}

static int32_t last_layer_kept(const qkv_graph *g) {
    int32_t last = g->step ? g->model->hp.n_layer - 1 : g->from; /* a step fills all caches */
    for (int32_t il = g->from; il <= g->model->hp.n_layer; il++) {
        for (int site = 0; site < QKV_SITE_COUNT; site++) {
            if (g->keep[(size_t)il * QKV_SITE_COUNT + (size_t)site]) last = il;
        }
    }
    return last;
}

static int edits_inputs(const qkv_graph *g) {
    for (int64_t b = 0; b < g->n_members; b++) {
        if (qkv_variant_edits_inputs(g->members[b].variant)) return 1;
    }
    return 0;
}

size_t qkv_graph_max_nodes(const qkv_graph *g) {
    size_t blocks = (size_t)((g->n_tokens + g->block_rows - 1) / g->block_rows);
    size_t each = MAX_NODES_PER_LAYER + blocks * MAX_NODES_PER_BLOCK;
    if (edits_inputs(g)) each += MAX_NODES_OF_COPIES;
    return (size_t)(g->model->hp.n_layer + 1) * each;
}

static int allocate_context(qkv_graph *g, qkv_error *err) {
    size_t nodes = qkv_graph_max_nodes(g);
    struct ggml_init_params params = {
        .mem_size = nodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(nodes, false),
        .no_alloc = true,
    };
    if (qkv_memory_allows(params.mem_size)) g->ctx = ggml_init(params);
    if (!g->ctx) return qkv_fail_memory(err);
    g->cgraph = ggml_new_graph_custom(g->ctx, nodes, false);
    return QKV_OK;
}

void qkv_mask_fill(const qkv_graph *g, float *band, int32_t window) {
    int64_t n_tokens = g->n_tokens;
    int64_t rows = g->block_rows < n_tokens ? g->block_rows : n_tokens;
    int64_t width = rows < n_tokens ? 2 * n_tokens : g->n_before + n_tokens;
    /* Column of the first row's own key. */
    int64_t origin = rows < n_tokens ? n_tokens : g->n_before;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t c = 0; c < width; c++) {
            int64_t back = origin + i - c; /* how far before its query the key is */
            int visible = back >= 0 || !g->model->hp.causal;
            if (window && (back >= window || -back >= window)) visible = 0;
            band[i * width + c] = visible ? 0 : -INFINITY;
        }
    }
}

void qkv_mask_fill_step(const qkv_graph *g, float *mask, int kind) {
    const int64_t keys = g->step->keys[kind];
    const qkv_hparams *hp = &g->model->hp;
    const int64_t window = kind == QKV_MASK_FULL ? 0 : hp->is_chunked ? -hp->window : hp->window;
    for (int64_t i = 0; i < g->n_tokens; i++) {
        const int64_t query = g->step->position + i, first = qkv_first_key(window, query);
        for (int64_t c = 0; c < keys; c++) {
            const int64_t key = g->step->first[kind] + c;
            mask[i * keys + c] = key >= first && key <= query ? 0 : -INFINITY;
        }
    }
}

static void add_inputs(qkv_graph *g) {
    const qkv_hparams *hp = &g->model->hp;
    int one_block = g->block_rows >= g->n_tokens;
    int64_t width = one_block ? g->n_before + g->n_tokens : 2 * g->n_tokens;
    int64_t rows = one_block || g->step ? g->n_tokens : g->block_rows;
    g->in_position = qkv_input(g, GGML_TYPE_I32, g->n_tokens, 1, 1);
    if (g->n_before) {
        g->in_position_before = qkv_input(g, GGML_TYPE_I32, g->n_before, 1, 1);
        g->in_before = qkv_calloc(2 * (size_t)hp->n_layer, sizeof *g->in_before);
        if (!g->in_before) g->out_of_memory = 1;
    }
    for (int i = 0; i < QKV_MASK_COUNT; i++)
        g->in_mask[i] = qkv_input(g, GGML_TYPE_F32, g->step ? g->step->keys[i] : width, rows, 1);
    for (int i = 0; i < QKV_ROPE_COUNT; i++) {
        if (hp->rope[i].divisors)
            g->in_divisors[i] = qkv_input(g, GGML_TYPE_F32, hp->rope[i].dims / 2, 1, 1);
    }
}

/* What edits remember of earlier rows; of a step, caches have it. */
static int allocate_keeps(qkv_graph *g, qkv_error *err) {
    if (!g->in_order || g->step) return QKV_OK;
    g->keeps = qkv_calloc((size_t)g->n_members, sizeof *g->keeps);
    int status = g->keeps ? QKV_OK : qkv_fail_memory(err);
    for (int64_t b = 0; b < g->n_members && status == QKV_OK; b++)
        status = qkv_keep_state_new(&g->keeps[b], g->model->hp.largest.n_head, g->n_tokens, err);
    return status;
}

int qkv_graph_build(qkv_graph *g, qkv_error *err) {
    const qkv_hparams *hp = &g->model->hp;
    g->n_members = g->n_batch;
    int status = allocate_context(g, err);
    if (status == QKV_OK) status = allocate_keeps(g, err);
    if (status != QKV_OK) return status;
    add_inputs(g);
    g->seen = qkv_calloc((size_t)hp->n_layer, sizeof *g->seen);
    if (g->out_of_memory || !g->seen) return qkv_fail_memory(err);
    int32_t last = last_layer_kept(g);
    g->at_layer = -1;
    if (g->step) g->n_batch = g->step->n_texts;
    struct ggml_tensor *x = first_residual(g);
    for (int32_t il = g->from; il < hp->n_layer && il <= last; il++) {
        if (qkv_steps_tick(g->steps)) return qkv_fail_cancelled(err);
        status = qkv_weights_prepare(g->model, il, err);
        if (status != QKV_OK) return status;
        g->at_layer = il;
        if (g->step) x = with_joining(g, il, x);
        x = layer(g, il, x);
    }
    g->at_layer = hp->n_layer;
    g->behind_attention = 1;
    if (g->step) x = with_joining(g, hp->n_layer, x);
    if (last == hp->n_layer) output(g, x);
    return g->out_of_memory ? qkv_fail_memory(err) : QKV_OK;
}

void qkv_graph_rewind(qkv_graph *g) {
    for (size_t i = 0; i < g->n_products; i++) atomic_store(&g->products[i]->next, 0);
    for (size_t i = 0; i < g->n_checks; i++) atomic_store(&g->checks[i]->first, INT64_MAX);
    g->custom_error.status = QKV_OK;
}

qkv_cost qkv_graph_cost(const qkv_graph *g) {
    qkv_cost cost = {0};
    for (int i = 0; i < ggml_graph_n_nodes(g->cgraph); i++) {
        const struct ggml_tensor *node = ggml_graph_node(g->cgraph, i);
        double flop, bytes;
        const qkv_product_kind kind = qkv_product_of(node, &flop, &bytes);
        cost.flop += flop;
        cost.bytes += bytes;
        cost.n_matmul += kind == QKV_PRODUCT_WEIGHT;
        cost.n_attention += kind == QKV_PRODUCT_ATTENTION;
    }
    return cost;
}
