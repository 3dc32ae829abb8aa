/*
 * Attention, with scores and pattern as tensors of their own: nothing is fused that can be observed.
 *
 * Queries are taken in blocks of rows, so that no more than one block of a map exists at a time
 * unless whole maps are asked for.
 */
#include <assert.h>
#include <math.h>

#include "base/first_key.h"
#include "run/graph/build.h"
#include "run/graph/head_input.h"

typedef struct qkv_heads {
    struct ggml_tensor *q, *k, *v; /* [d, H, T, B], [d, G, T, B] twice */
    struct ggml_tensor *plain_v;   /* v without edits by query; NULL: there are none */
    struct ggml_tensor *gate;      /* that z is multiplied by, [d, H, T, B]; NULL: by nothing */
} qkv_heads;

/* What blocks of queries look at; in a step, caches stand for keys and values. */
typedef struct looked_at {
    struct ggml_tensor *q, *q_in_cache; /* the latter NULL where positions are those of the text */
    qkv_seen seen;                      /* values.edited NULL: only the map is wanted */
} looked_at;

/* Rows [offset, offset + heads·d) of a projected tensor as [d, heads, T, B]. */
static struct ggml_tensor *as_heads(qkv_graph *g, struct ggml_tensor *x, int64_t offset,
                                    int64_t heads, int64_t d) {
    if (x->ne[0] != heads * d) {
        x = ggml_view_3d(g->ctx, x, heads * d, x->ne[1], x->ne[2], x->nb[1], x->nb[2],
                         (size_t)offset * sizeof(float));
        x = ggml_cont(g->ctx, x);
    }
    return ggml_reshape_4d(g->ctx, x, d, heads, g->n_tokens, g->n_batch);
}

/* QK-norm: over each head, by weights that heads share [d] or have of their own [d, heads]; or over
 * all heads together [heads·d]. */
static struct ggml_tensor *norm_heads(qkv_graph *g, qkv_head_norm norm, struct ggml_tensor *x) {
    if (!norm.weight || norm.weight->ne[0] == x->ne[0])
        return qkv_norm(g, norm.weight, norm.bias, x);
    struct ggml_tensor *flat =
        ggml_reshape_3d(g->ctx, x, x->ne[0] * x->ne[1], g->n_tokens, g->n_batch);
    return ggml_reshape_4d(g->ctx, qkv_norm(g, norm.weight, norm.bias, flat), x->ne[0], x->ne[1],
                           g->n_tokens, g->n_batch);
}

struct ggml_tensor *qkv_attention_input(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    if (LAYER(g, il, ATTN_NORM_2))
        return qkv_norm(g, LAYER(g, il, ATTN_NORM_2), LAYER(g, il, ATTN_NORM_2_BIAS), x);
    return qkv_norm(g, LAYER(g, il, ATTN_NORM), LAYER(g, il, ATTN_NORM_BIAS), x);
}

/* W_q's output [2Hd, T, B] has, per head, q and then a gate: the one or the other, [d, H, T, B]. */
static struct ggml_tensor *half_of_heads(qkv_graph *g, int32_t il, struct ggml_tensor *x,
                                         int second) {
    const qkv_layer_shape *shape = &g->model->hp.layers[il];
    const int64_t d = shape->head_dim, H = shape->n_head;
    const size_t width = (size_t)d * sizeof(float);
    x = ggml_view_4d(g->ctx, x, d, H, g->n_tokens, g->n_batch, 2 * width, x->nb[1], x->nb[2],
                     second ? width : 0);
    return ggml_cont(g->ctx, x);
}

/* q, and the gate. */
static void project_gated(qkv_graph *g, int32_t il, struct ggml_tensor *x, qkv_heads *p) {
    struct ggml_tensor *both = qkv_linear(g, LAYER(g, il, Q), LAYER(g, il, Q_BIAS), x);
    p->q = half_of_heads(g, il, both, 0);
    p->gate = half_of_heads(g, il, both, 1);
}

/* Before the norm of heads. */
static qkv_heads project(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    const qkv_layer_shape *shape = &g->model->hp.layers[il];
    const int64_t H = shape->n_head, G = shape->n_kv_head, d = shape->head_dim;
    const int64_t dv = shape->value_dim;
    qkv_heads p = {0};
    if (LAYER(g, il, QKV)) {
        struct ggml_tensor *s = qkv_linear(g, LAYER(g, il, QKV), LAYER(g, il, QKV_BIAS), x);
        p.q = as_heads(g, s, 0, H, d);
        p.k = as_heads(g, s, H * d, G, d);
        p.v = as_heads(g, s, (H + G) * d, G, dv);
    } else {
        if (g->model->hp.has_gate)
            project_gated(g, il, x, &p);
        else
            p.q = as_heads(g, qkv_linear(g, LAYER(g, il, Q), LAYER(g, il, Q_BIAS), x), 0, H, d);
        if (shape->kv_layer != il) return p;
        p.k = as_heads(g, qkv_linear(g, LAYER(g, il, K), LAYER(g, il, K_BIAS), x), 0, G, d);
        p.v = !LAYER(g, il, V)
                  ? p.k /* before the norms of heads */
                  : as_heads(g, qkv_linear(g, LAYER(g, il, V), LAYER(g, il, V_BIAS), x), 0, G, dv);
    }
    return p;
}

/* The heads that an earlier pass projected. */
static qkv_heads given_heads(qkv_graph *g) {
    const qkv_layer_shape *shape = &g->model->hp.layers[g->from];
    g->in_q = qkv_input(g, GGML_TYPE_F32, shape->head_dim, shape->n_head, g->n_tokens);
    g->in_k = qkv_input(g, GGML_TYPE_F32, shape->head_dim, shape->n_kv_head, g->n_tokens);
    g->in_v = qkv_input(g, GGML_TYPE_F32, shape->value_dim, shape->n_kv_head, g->n_tokens);
    return (qkv_heads){.q = qkv_for_each_variant(g, g->in_q),
                       .k = qkv_for_each_variant(g, g->in_k),
                       .v = qkv_for_each_variant(g, g->in_v)};
}

/* Heads that read something else than the layer's input x, and the norm of heads, which those of an
 * earlier pass have had. */
static struct ggml_tensor *finish_heads(qkv_graph *g, qkv_site in, int32_t il,
                                        struct ggml_tensor *x, struct ggml_tensor *heads,
                                        qkv_head_norm norm, int given) {
    if (!given) heads = qkv_rotate_before_norm(g, in, il, heads);
    if (qkv_heads_are_normed_together(g->model, in, il) && !given) {
        heads = qkv_head_inputs(g, in, il, x, heads, (qkv_head_norm){0});
        return qkv_clamped(g, norm_heads(g, norm, heads));
    }
    if (!given) heads = qkv_clamped(g, norm_heads(g, norm, heads));
    return qkv_head_inputs(g, in, il, x, heads, norm);
}

/* Of a layer that uses another's keys and values, queries alone. */
static qkv_heads edited_heads(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    const int given = g->start == QKV_START_HEADS && il == g->from;
    qkv_heads p = given ? given_heads(g) : project(g, il, qkv_attention_input(g, il, x));
    if (given && g->model->hp.has_gate) { /* which no pass leaves */
        qkv_heads own = {0};
        project_gated(g, il, qkv_attention_input(g, il, x), &own);
        p.gate = own.gate;
    }
    if (p.gate) p.gate = qkv_tap(g, QKV_SITE_GATE, il, ggml_sigmoid(g->ctx, p.gate));
    const qkv_head_norm q_norm = {LAYER(g, il, Q_NORM), LAYER(g, il, Q_NORM_BIAS)};
    const qkv_head_norm k_norm = {LAYER(g, il, K_NORM), LAYER(g, il, K_NORM_BIAS)};
    p.q = finish_heads(g, QKV_SITE_Q_IN, il, x, p.q, q_norm, given);
    p.q = qkv_tap(g, QKV_SITE_Q, il, p.q);
    if (g->model->hp.layers[il].kv_layer != il) return p;
    p.k = finish_heads(g, QKV_SITE_K_IN, il, x, p.k, k_norm, given);
    p.v = finish_heads(g, QKV_SITE_V_IN, il, x, p.v, (qkv_head_norm){LAYER(g, il, V_NORM), NULL},
                       given);
    p.k = qkv_tap(g, QKV_SITE_K, il, p.k);
    p.v = qkv_tap_shared(g, QKV_SITE_V, il, p.v, &p.plain_v);
    return p;
}

int qkv_mask_kind(const qkv_graph *g, int32_t il) {
    if (!qkv_layer_window(g->model, il)) return QKV_MASK_FULL;
    if (!g->step || g->step->caches[il * g->n_members]->bounded) return QKV_MASK_WINDOW;
    return QKV_MASK_WINDOW_WIDE;
}

/* Of queries at `position` [rows], and keys from the first of the text on. */
static void run_chunk_mask(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const qkv_hparams *hp = data;
    const int32_t *position = dst->src[0]->data;
    for (int64_t i = ith; i < dst->ne[1]; i += nth) {
        float *row = (float *)dst->data + i * dst->ne[0];
        const int64_t first = qkv_first_key(-(int64_t)hp->window, position[i]);
        for (int64_t k = 0; k < dst->ne[0]; k++)
            row[k] = k >= first && k <= position[i] ? 0 : -INFINITY;
    }
}

/* Chunks begin at places of the text, so that no band fits all blocks. */
static struct ggml_tensor *chunk_mask(qkv_graph *g, int64_t first, int64_t rows, int64_t keys) {
    struct ggml_tensor *position =
        ggml_view_1d(g->ctx, g->in_position, rows, (size_t)first * sizeof(int32_t));
    return ggml_custom_4d(g->ctx, GGML_TYPE_F32, keys, rows, 1, 1, &position, 1, run_chunk_mask,
                          GGML_N_TASKS_MAX, (void *)&g->model->hp);
}

/* A window into the band of qkv_mask_fill: `rows` queries from `first` on, `keys` keys. */
static struct ggml_tensor *mask_of(qkv_graph *g, int32_t il, int64_t first, int64_t rows,
                                   int64_t keys) {
    struct ggml_tensor *band = g->in_mask[qkv_mask_kind(g, il)];
    if (g->model->hp.is_chunked && !g->step && qkv_mask_kind(g, il) != QKV_MASK_FULL)
        return chunk_mask(g, first, rows, keys);
    if (g->step)
        return ggml_view_2d(g->ctx, band, keys, rows, band->nb[1], (size_t)first * band->nb[1]);
    if (band->ne[0] == keys) return band; /* one block */
    size_t offset = (size_t)(g->n_tokens - first) * sizeof(float);
    return ggml_cont(g->ctx, ggml_view_2d(g->ctx, band, keys, rows, band->nb[1], offset));
}

/* A learned sink per head takes part in the softmax and gets no column. */
static void add_sinks(qkv_graph *g, int32_t il, struct ggml_tensor *pattern, qkv_part part) {
    struct ggml_tensor *sinks = LAYER(g, il, SINKS);
    if (!sinks) return;
    if (pattern->ne[2] != sinks->ne[0])
        sinks =
            ggml_view_1d(g->ctx, sinks, pattern->ne[2], (size_t)part.first_head * sizeof(float));
    ggml_soft_max_add_sinks(pattern, sinks);
}

static int map_is_edited(const qkv_graph *g, int32_t il) {
    return qkv_graph_edits(g, QKV_SITE_SCORES, il) || qkv_graph_edits(g, QKV_SITE_PATTERN, il);
}

/* scale · k·q, soft-capped, with a bias by distance where the model has one: [keys, rows, H, B] */
static struct ggml_tensor *scores_of(qkv_graph *g, int32_t il, struct ggml_tensor *q,
                                     qkv_two_ways keys, const qkv_query_block *block,
                                     int in_cache) {
    const int32_t of = g->model->hp.layers[il].kv_layer;
    struct ggml_tensor *scores = g->step ? qkv_cached_key_product(g, of, q, keys.edited, block)
                                         : qkv_key_product(g, q, keys.edited, block);
    if (keys.plain)
        scores =
            qkv_by_query_scores(g, of, scores, qkv_key_product(g, q, keys.plain, block), block);
    scores = ggml_scale(g->ctx, scores, g->model->hp.attn_scale);
    scores = qkv_softcap(g, scores, g->model->hp.attn_softcap);
    return qkv_score_bias(g, il, scores, block, in_cache);
}

/* pattern = softmax(scores + mask) for one block of queries. */
static struct ggml_tensor *pattern_of(qkv_graph *g, int32_t il, const looked_at *s,
                                      const qkv_query_block *block) {
    const qkv_part part = {.first_head = (int32_t)block->first_head, .first_row = block->first_row};
    struct ggml_tensor *moved =
        s->q_in_cache ? scores_of(g, il, s->q_in_cache, s->seen.keys, block, 1) : NULL;
    struct ggml_tensor *scores =
        qkv_tap_scores(g, il, scores_of(g, il, s->q, s->seen.keys, block, 0), moved, part);
    struct ggml_tensor *mask = mask_of(g, il, block->first_row, block->rows, block->keys);
    struct ggml_tensor *pattern =
        ggml_soft_max_ext(g->ctx, scores, mask, 1, 0); // [keys, rows, H, B]
    add_sinks(g, il, pattern, part);
    return qkv_tap_part(g, QKV_SITE_PATTERN, il, pattern, part);
}

/* Does anything that is kept depend on z? */
static int z_is_needed(const qkv_graph *g, int32_t il) {
    const qkv_hparams *hp = &g->model->hp;
    if (g->step && il < hp->n_layer - 1) return 1; /* caches of later layers */
    for (int32_t seen = il; seen <= hp->n_layer; seen++) {
        for (int site = 0; site < QKV_SITE_COUNT; site++) {
            if (g->keep[(size_t)seen * QKV_SITE_COUNT + (size_t)site] &&
                qkv_site_reaches(hp, QKV_SITE_Z, il, (qkv_site)site, seen))
                return 1;
        }
    }
    return 0;
}

/* Keys that no query of a block can see are left out, unless an edit of the map may read or write
 * them. That changes no bit of the rest, which may be another variant's of the batch. */
static int64_t keys_of_block(const qkv_graph *g, int32_t il, int64_t first, int64_t rows) {
    if (g->step) return g->step->keys[qkv_mask_kind(g, il)];
    return g->model->hp.causal && !map_is_edited(g, il) ? g->n_before + first + rows
                                                        : g->n_before + g->n_tokens;
}

static struct ggml_tensor *mixed_values(qkv_graph *g, int32_t il, struct ggml_tensor *pattern,
                                        qkv_two_ways values, const qkv_query_block *block) {
    il = g->model->hp.layers[il].kv_layer;
    if (g->step) return qkv_cached_value_product(g, il, pattern, values.edited, block->first_row);
    if (values.plain) return qkv_by_query_values(g, il, pattern, values, block);
    return qkv_value_product(g, pattern, values.edited, g->model->hp.layers[il].value_dim);
}

/* A tensor like q, but as wide as values: [d, H, T, B]. */
static struct ggml_tensor *room_for_z(qkv_graph *g, int32_t il, struct ggml_tensor *q) {
    const int64_t d = g->model->hp.layers[il].value_dim;
    if (d == q->ne[0]) return ggml_dup(g->ctx, q);
    if (d > q->ne[0]) return ggml_pad(g->ctx, q, (int)(d - q->ne[0]), 0, 0, 0);
    return ggml_cont(g->ctx, ggml_view_4d(g->ctx, q, d, q->ne[1], q->ne[2], q->ne[3], q->nb[1],
                                          q->nb[2], q->nb[3], 0));
}

/* z = pattern · v, block by block, so that no more than block_rows rows of a map exist at a time.
 * Without values, only the map is wanted.
 *
 * A block's share of z enters the graph with the block. Left to what needs z later, it would come
 * after the readers of all blocks, and every block would have to stay in memory until then. */
static struct ggml_tensor *attend_in_blocks(qkv_graph *g, int32_t il, const looked_at *s,
                                            qkv_query_block block) {
    int64_t T = g->n_tokens;
    int needed = s->seen.values.edited && z_is_needed(g, il);
    struct ggml_tensor *z = NULL; // [d, H, T, B]
    if (s->seen.values.edited && g->block_rows < T) z = room_for_z(g, il, s->q);
    /* From the last block to the first: later blocks see more keys, and memory that the largest one
     * has used fits the others. Unless rows depend on earlier ones. */
    const int64_t n_blocks = (T + g->block_rows - 1) / g->block_rows;
    for (int64_t i = 0; i < n_blocks; i++) {
        const int64_t first = (g->in_order ? i : n_blocks - 1 - i) * g->block_rows;
        block.first_row = first;
        block.rows = T - first < g->block_rows ? T - first : g->block_rows;
        block.keys = keys_of_block(g, il, first, block.rows);
        struct ggml_tensor *pattern = pattern_of(g, il, s, &block);
        if (!s->seen.values.edited) continue;
        struct ggml_tensor *zb = mixed_values(g, il, pattern, s->seen.values, &block);
        if (block.rows == T) return zb;
        assert(z);
        z = ggml_set_inplace(g->ctx, z, zb, z->nb[1], z->nb[2], z->nb[3], (size_t)first * z->nb[2]);
        if (needed) ggml_build_forward_expand(g->cgraph, z);
    }
    return z;
}

/* The baseline's k (after RoPE) or v of the tokens that are left out, and after it that of the others:
 * [d, G, n_before + T, B]. */
static struct ggml_tensor *with_before(qkv_graph *g, int32_t il, int of_values,
                                       struct ggml_tensor *x) {
    if (!g->n_before) return x;
    struct ggml_tensor *before =
        qkv_input(g, GGML_TYPE_F32, x->ne[0], g->model->hp.layers[il].n_kv_head, g->n_before);
    g->in_before[2 * il + of_values] = before;
    if (!of_values) before = qkv_rotate_after_norm(g, il, before, g->in_position_before);
    return ggml_concat(g->ctx, qkv_for_each_variant(g, before), x, 2);
}

/* What the layer's own keys and values are for its queries, and for those of later layers: packed, or in
 * caches. `block` has the query heads that are computed, of which H there are in all. */
static qkv_seen look_at(qkv_graph *g, int32_t il, qkv_heads p, const qkv_query_block *block) {
    const int64_t H = g->model->hp.layers[il].n_head;
    struct ggml_tensor *plain_k = NULL;
    struct ggml_tensor *k =
        qkv_tap_shared(g, QKV_SITE_K_ROT, il, qkv_rotate_after_norm(g, il, p.k, g->in_position),
                       &plain_k); // [d, G, T, B]
    qkv_seen s = {0};
    if (g->step) {
        s.keys.edited = qkv_cache_keys(g, il, k);
        s.values.edited = qkv_cache_values(g, il, p.v);
        return s;
    }
    k = with_before(g, il, 0, k);
    p.v = with_before(g, il, 1, p.v);
    const int64_t shared_by = H / k->ne[1]; /* query heads that look at one head of k */
    const int64_t first = block->first_head / shared_by;
    const int64_t n = block->n_heads > shared_by ? block->n_heads / shared_by : 1;
    s.keys.edited = qkv_packed_keys(g, k, first, n);
    if (plain_k) s.keys.plain = qkv_packed_keys(g, plain_k, first, n);
    if (block->n_heads < H) return s; /* the pass ends with the pattern of these heads */
    s.values.edited = qkv_packed_values(g, p.v);
    if (p.plain_v) s.values.plain = qkv_packed_values(g, p.plain_v);
    return s;
}

static struct ggml_tensor *attend(qkv_graph *g, int32_t il, qkv_heads p) {
    const qkv_layer_shape *shape = &g->model->hp.layers[il];
    qkv_query_block block = {.n_heads = shape->n_head};
    if (g->n_heads && il == g->from && !g->step)
        block.first_head = g->first_head, block.n_heads = g->n_heads;
    struct ggml_tensor *q = qkv_rotate_after_norm(g, il, p.q, g->in_position); // [d, H, T, B]
    q = qkv_tap(g, QKV_SITE_Q_ROT, il, qkv_tempered(g, il, q));
    if (shape->kv_layer == il) g->seen[il] = look_at(g, il, p, &block);
    const looked_at s = {
        .q = q, .q_in_cache = qkv_queries_in_cache(g, il, q), .seen = g->seen[shape->kv_layer]};
    struct ggml_tensor *z = attend_in_blocks(g, il, &s, block);
    return s.seen.values.edited ? qkv_tap(g, QKV_SITE_Z, il, z) : NULL;
}

struct ggml_tensor *qkv_attention(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    const qkv_heads p = edited_heads(g, il, x);
    struct ggml_tensor *z = attend(g, il, p);
    if (!z) return NULL;
    if (p.gate) z = ggml_mul(g->ctx, z, p.gate);
    return ggml_reshape_3d(g->ctx, z, z->ne[0] * z->ne[1], g->n_tokens, g->n_batch);
}
