/*
 * The gated delta rule: a head's state S holds, at key k, what was last written there; every token lets it
 * decay, replaces a part of what it holds at k by v, and reads it at q.
 *
 *     S <- exp(a) S,  S <- S + b k (v - k·S),  out = q·S
 *     a = decay · softplus(alpha + bias),  b = sigmoid(beta)
 *
 * q and k are brought to length 1 first, and q is divided by the root of its width. A thread takes some columns
 * of a head (kernel/state_columns.h).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/state_columns.h"
#include "run/graph/mixer.h"

/* Inside the root of a length; the class fixes it. */
#define LENGTH_EPSILON 1e-6f

/* X(member of the list of sources) */
enum { FROM_QKV, FROM_ALPHA, FROM_DECAY, FROM_BIAS, FROM_BETA };

size_t qkv_head_state_size(const qkv_hparams *hp) {
    return (size_t)hp->mixer.inner * (size_t)hp->mixer.state;
}

/* Columns [first, first + n) of value head `head` of one text. */
typedef struct part {
    int64_t member, head, first, n;
} part;

static int64_t key_head(const qkv_hparams *hp, int64_t head) {
    const qkv_mixer_shape *m = &hp->mixer;
    return hp->mixer_kind == QKV_MIXER_DELTA_RUNS ? head / (m->n_heads / m->n_groups)
                                                  : head % m->n_groups;
}

static float softplus(float x) {
    return x > 20 ? x : log1pf(expf(x));
}

/* x of length `scale`. */
static void normalise(float *out, const float *x, int64_t n, float scale) {
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    const float factor = scale / sqrtf(sum + LENGTH_EPSILON);
    for (int64_t i = 0; i < n; i++) out[i] = x[i] * factor;
}

/* alpha and beta of a head; where they are one tensor: of each key head its betas, then its alphas. */
static void read_gates(const struct ggml_tensor *dst, const qkv_hparams *hp, const part *p,
                       int64_t t, float *alpha, float *beta) {
    const struct ggml_tensor *a = dst->src[FROM_ALPHA], *b = dst->src[FROM_BETA];
    const int64_t row = p->member * a->ne[1] + t, heads = hp->mixer.n_heads;
    const float *first = (const float *)a->data + row * a->ne[0];
    if (b) {
        *alpha = first[p->head];
        *beta = ((const float *)b->data)[row * heads + p->head];
        return;
    }
    const int64_t shared = heads / hp->mixer.n_groups, group = p->head / shared;
    *beta = first[2 * group * shared + p->head % shared];
    *alpha = first[(2 * group + 1) * shared + p->head % shared];
}

/* What the tokens do: q, k [width] twice, decay and step, one after the other for each token. */
static void prepare(const struct ggml_tensor *dst, const qkv_hparams *hp, const part *p,
                    float *tokens) {
    const struct ggml_tensor *x = dst->src[FROM_QKV];
    const int64_t width = hp->mixer.state, keys = width * hp->mixer.n_groups;
    const int64_t at = key_head(hp, p->head) * width;
    const float rate = ((const float *)dst->src[FROM_DECAY]->data)[p->head];
    const float bias = ((const float *)dst->src[FROM_BIAS]->data)[p->head];
    for (int64_t t = 0; t < x->ne[1]; t++, tokens += 2 * width + 2) {
        const float *row = (const float *)x->data + (p->member * x->ne[1] + t) * x->ne[0];
        float alpha, beta;
        normalise(tokens, row + at, width, 1 / sqrtf((float)width));
        normalise(tokens + width, row + keys + at, width, 1);
        read_gates(dst, hp, p, t, &alpha, &beta);
        tokens[2 * width] = expf(rate * softplus(alpha + bias));
        tokens[2 * width + 1] = 1 / (1 + expf(-beta));
    }
}

/* Columns of a state, as the cache has them: [head][width][value width]. */
static void copy_columns(const qkv_hparams *hp, const part *p, float *cached, float *state,
                         int is_read) {
    const int64_t wide = hp->mixer.inner / hp->mixer.n_heads, width = hp->mixer.state;
    for (int64_t i = 0; i < width; i++) {
        float *outside = cached + (p->head * width + i) * wide + p->first;
        float *inside = state + i * QKV_STATE_COLUMNS;
        memcpy(is_read ? inside : outside, is_read ? outside : inside,
               (size_t)p->n * sizeof *inside);
    }
}

static int run_part(struct ggml_tensor *dst, const qkv_graph *g, int32_t il, const part *p) {
    const qkv_hparams *hp = &g->model->hp;
    const struct ggml_tensor *x = dst->src[FROM_QKV];
    const int64_t width = hp->mixer.state, each = 2 * width + 2, T = x->ne[1];
    const int64_t wide = hp->mixer.inner / hp->mixer.n_heads, C = x->ne[0];
    const int64_t at = p->head * wide + p->first, keys = width * hp->mixer.n_groups;
    float *memory = qkv_calloc((size_t)(width * QKV_STATE_COLUMNS + T * each), sizeof *memory);
    if (!memory) return 0;
    float *tokens = memory + width * QKV_STATE_COLUMNS;
    float *cached = g->step ? g->step->caches[il * g->n_members + p->member]->head_state : NULL;
    if (cached && g->step->position > 0) copy_columns(hp, p, cached, memory, 1);
    prepare(dst, hp, p, tokens);
    qkv_delta_pass(
        &(qkv_state_pass){.n_tokens = T,
                          .width = width,
                          .n_columns = p->n,
                          .read = {tokens, each},
                          .write = {tokens + width, each},
                          .value = {(const float *)x->data + p->member * T * C + 2 * keys + at, C},
                          .decay = {tokens + 2 * width, each},
                          .step = {tokens + 2 * width + 1, each},
                          .state = memory,
                          .out = (float *)dst->data + p->member * T * dst->ne[0] + at,
                          .out_stride = dst->ne[0]});
    if (cached) copy_columns(hp, p, cached, memory, 0);
    free(memory);
    return 1;
}

static void run_delta(struct ggml_tensor *dst, int ith, int nth, void *data) {
    (void)ith, (void)nth;
    qkv_product_op *op = data;
    const qkv_mixer_shape *m = &op->graph->model->hp.mixer;
    const int64_t wide = m->inner / m->n_heads;
    const int64_t parts = (wide + QKV_STATE_COLUMNS - 1) / QKV_STATE_COLUMNS;
    for (int64_t i; (i = qkv_product_take(op)) < parts * m->n_heads * dst->ne[2];) {
        part p = {.member = i / parts / m->n_heads, .head = i / parts % m->n_heads};
        p.first = i % parts * QKV_STATE_COLUMNS;
        p.n = wide - p.first < QKV_STATE_COLUMNS ? wide - p.first : QKV_STATE_COLUMNS;
        if (!run_part(dst, op->graph, op->layer, &p))
            atomic_store(&((qkv_graph *)op->graph)->ran_short, 1);
    }
}

struct ggml_tensor *qkv_delta_rule(qkv_graph *g, int32_t il, const qkv_delta_inputs *in) {
    struct ggml_tensor *from[] = {[FROM_QKV] = in->qkv,
                                  [FROM_ALPHA] = in->alpha,
                                  [FROM_DECAY] = in->decay,
                                  [FROM_BIAS] = in->bias,
                                  [FROM_BETA] = in->beta};
    const int64_t ne[] = {g->model->hp.mixer.inner, in->qkv->ne[1], in->qkv->ne[2], 1};
    return qkv_product_node(g, ne, from, in->beta ? 5 : 4, run_delta,
                            (qkv_product_op){.kind = QKV_PRODUCT_NONE, .graph = g, .layer = il});
}
