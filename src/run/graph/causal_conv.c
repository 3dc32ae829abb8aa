/*
 * The short convolution of linear mixers: a channel sees itself, of a token and of the n_taps - 1 tokens before
 * it. In a step these come from the cache, which then gets the last ones. A thread takes whole channels, so
 * that no thread reads what another has written.
 */
#include <string.h>

#include "run/graph/mixer.h"

/* Channels that are taken at a time. */
enum { CHANNELS = 64 };

size_t qkv_conv_state_size(const qkv_hparams *hp) {
    return (size_t)(hp->mixer.n_taps - 1) * (size_t)qkv_mixer_channels(hp);
}

/* Channels [first, first + n) of one text. */
typedef struct channels {
    const struct ggml_tensor *x, *w, *bias; /* bias NULL: none */
    float *history; /* n_taps - 1 tokens, the oldest first; NULL: there were none */
    int64_t first, n, member;
} channels;

/* Channels of token t, which may be before the first one; NULL: there is none. */
static const float *token_at(const channels *c, int64_t t) {
    const int64_t C = c->x->ne[0], T = c->x->ne[1], before = c->w->ne[0] - 1;
    if (t >= 0) return (const float *)c->x->data + (c->member * T + t) * C + c->first;
    return c->history ? c->history + (before + t) * C + c->first : NULL;
}

static void convolve(const channels *c, struct ggml_tensor *dst) {
    const int64_t C = dst->ne[0], T = dst->ne[1], taps = c->w->ne[0];
    const float *w = (const float *)c->w->data + c->first * taps;
    const float *bias = c->bias ? (const float *)c->bias->data + c->first : NULL;
    for (int64_t t = 0; t < T; t++) {
        float *out = (float *)dst->data + (c->member * T + t) * C + c->first;
        for (int64_t i = 0; i < c->n; i++) out[i] = bias ? bias[i] : 0;
        for (int64_t tap = 0; tap < taps; tap++) {
            const float *x = token_at(c, t - taps + 1 + tap);
            for (int64_t i = 0; x && i < c->n; i++) out[i] += w[i * taps + tap] * x[i];
        }
    }
}

/* The last tokens, for the next step. From the oldest on: what is read lies after what is written. */
static void remember(const channels *c) {
    const int64_t C = c->x->ne[0], T = c->x->ne[1], before = c->w->ne[0] - 1;
    for (int64_t i = 0; i < before; i++) {
        const float *x = token_at(c, T - before + i);
        memmove(c->history + i * C + c->first, x, (size_t)c->n * sizeof *x);
    }
}

/* NULL: the text has no tokens before these. */
static float *history_of(const qkv_product_op *op, int64_t b) {
    const qkv_graph *g = op->graph;
    return g->step ? g->step->caches[op->layer * g->n_members + b]->conv_state : NULL;
}

static void run_conv(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const qkv_product_op *op = data;
    const struct ggml_tensor *x = dst->src[0];
    const int64_t C = x->ne[0], parts = (C + CHANNELS - 1) / CHANNELS;
    for (int64_t i = ith; i < parts * x->ne[2]; i += nth) {
        channels c = {.x = x, .w = dst->src[1], .bias = dst->src[2]};
        c.member = i / parts;
        c.first = i % parts * CHANNELS;
        c.n = C - c.first < CHANNELS ? C - c.first : CHANNELS;
        c.history = history_of(op, c.member);
        for (int64_t t = 0; c.history && op->graph->step->position == 0 && t < c.w->ne[0] - 1; t++)
            memset(c.history + t * C + c.first, 0, (size_t)c.n * sizeof(float));
        convolve(&c, dst);
        if (c.history) remember(&c);
    }
}

struct ggml_tensor *qkv_causal_conv(qkv_graph *g, int32_t il, struct ggml_tensor *w,
                                    struct ggml_tensor *bias, struct ggml_tensor *x) {
    struct ggml_tensor *from[] = {x, w, bias};
    return qkv_product_node(g, x->ne, from, bias ? 3 : 2, run_conv,
                            (qkv_product_op){.kind = QKV_PRODUCT_NONE, .graph = g, .layer = il});
}
