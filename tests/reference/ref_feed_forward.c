/* The feed-forward block in plain loops, plain, gated or of experts: see ref_pass.h. */
#include <math.h>
#include <stdlib.h>

#include "reference/ref_pass.h"

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static double xielu(const double own[4], double x) {
    if (x > 0) return own[0] * x * x + own[2] * x;
    return own[1] * (expm1(fmin(x, own[3])) - x) + own[2] * x;
}

double ref_activated(ref_activation kind, double x) {
    switch (kind) {
    case REF_SILU:
        return x * sigmoid(x);
    case REF_GELU_TANH:
        return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case REF_GELU_ERF:
        return 0.5 * x * (1 + erf(x / 1.41421356237309504880));
    case REF_RELU:
        return fmax(x, 0);
    case REF_RELU_SQUARED:
        return fmax(x, 0) * fmax(x, 0);
    case REF_XIELU:
    case REF_CLAMPED:
        break;
    }
    abort();
}

static double gated(ref_activation kind, double gate, double up) {
    if (kind != REF_CLAMPED) return ref_activated(kind, gate) * up;
    gate = fmin(gate, 7);
    up = fmin(fmax(up, -7), 7);
    return (up + 1) * gate * sigmoid(1.702 * gate);
}

/* One feed-forward of n rows, F wide: gate (or none), up, down. Its neurons are a site, unless it is an
 * expert's: then there is no pass. */
static void mlp(const ref_model *m, const ref_pass *p, int il, double *out, const double *x,
                ref_linear gate, ref_linear up, ref_linear down, int n, int F) {
    const ref_activation kind = m->activation;
    const size_t count = (size_t)n * (size_t)F;
    double *inner = ref_new_doubles(count), *opened = ref_new_doubles(count);
    ref_apply_linear(inner, x, up, n, F, m->D);
    if (gate.w) ref_apply_linear(opened, x, gate, n, F, m->D);
    for (size_t i = 0; i < count; i++)
        inner[i] = gate.w              ? gated(kind, opened[i], inner[i])
                   : kind == REF_XIELU ? xielu(m->layers[il].xielu, inner[i])
                                       : ref_activated(kind, inner[i]);
    if (p) ref_tap(p, QKV_SITE_MLP_ACT, il, inner);
    ref_apply_linear(out, inner, down, n, m->D, F);
    free(inner);
    free(opened);
}

/* ---- experts ---- */

/* The matrix of expert e, of rows x cols. */
static ref_linear of_expert(ref_linear all, int e, int rows, int cols) {
    const size_t first = (size_t)e * (size_t)rows;
    return (ref_linear){all.w + first * (size_t)cols, all.b ? all.b + first : NULL};
}

/* How many experts have a better score. */
static int rank_of(const double *scores, int n, int e) {
    int rank = 0;
    for (int i = 0; i < n; i++) rank += scores[i] > scores[e] || (scores[i] == scores[e] && i < e);
    return rank;
}

/* What the scores say of each expert: its share of a softmax over all, or its sigmoid. */
static void weigh(const ref_model *m, double *weight, const double *scores) {
    double sum = 0, largest = scores[0];
    for (int e = 1; e < m->n_expert; e++) largest = fmax(largest, scores[e]);
    for (int e = 0; e < m->n_expert; e++) sum += exp(scores[e] - largest);
    for (int e = 0; e < m->n_expert; e++)
        weight[e] = m->family->sigmoid_router ? sigmoid(scores[e]) : exp(scores[e] - largest) / sum;
}

/* Experts of groups that are not among the best lose all hope. A group is as good as its best two together. */
static void leave_groups(const ref_model *m, double *hope) {
    const int each = m->n_group > 1 ? m->n_expert / m->n_group : 0;
    double group[256];
    for (int i = 0; i < m->n_group && each; i++) {
        group[i] = 0;
        for (int e = 0; e < each; e++)
            if (rank_of(hope + i * each, each, e) < 2) group[i] += hope[i * each + e];
    }
    for (int e = 0; e < m->n_expert && each; e++)
        if (rank_of(group, m->n_group, e / each) >= m->n_group_used) hope[e] = -INFINITY;
}

/* The softmax over the scores of those in the running that are close to expert e, at e. A score is close when it
 * is below e's by no more than 2 · jitter, as a share of the larger of its own magnitude and e's score. */
static double mixed_share(const ref_model *m, const double *scores, const char *is_out, int e) {
    double sum = 0;
    for (int i = 0; i < m->n_expert; i++) {
        const double below = scores[e] - scores[i], scale = fmax(fabs(scores[i]), scores[e]);
        if (!is_out[i] && below / scale <= 2 * m->jitter) sum += exp(scores[i] - scores[e]);
    }
    return 1 / sum;
}

/* The best expert, and the best of the others without it. */
static void mix_two(const ref_model *m, double *share, const double *scores) {
    char is_out[256] = {0};
    for (int e = 0; e < m->n_expert; e++) share[e] = 0;
    for (int place = 0; place < 2; place++)
        for (int e = 0; e < m->n_expert; e++) {
            if (rank_of(scores, m->n_expert, e) != place) continue;
            share[e] = mixed_share(m, scores, is_out, e);
            is_out[e] = 1;
            break;
        }
}

/* What each expert counts for a token: the best k their weights, which may be brought to a sum of 1. */
static void choose(const ref_model *m, const ref_layer *l, double *share, const double *scores) {
    double *hope = ref_new_doubles((size_t)m->n_expert), sum = 0;
    weigh(m, share, scores);
    for (int e = 0; e < m->n_expert; e++)
        hope[e] = share[e] + (l->choice_bias ? (double)l->choice_bias[e] : 0);
    leave_groups(m, hope);
    for (int e = 0; e < m->n_expert; e++) {
        if (rank_of(hope, m->n_expert, e) >= m->n_expert_used) share[e] = 0;
        sum += share[e];
    }
    for (int e = 0; e < m->n_expert; e++) share[e] *= m->share_factor / (m->keeps_shares ? 1 : sum);
    free(hope);
}

/* out [D] of one token x [D] */
static void experts(const ref_model *m, const ref_layer *l, double *out, const double *x) {
    double *scores = ref_new_doubles(2 * (size_t)m->n_expert), *share = scores + m->n_expert;
    double *one = ref_new_doubles(2 * (size_t)m->D), *read = one + m->D;
    ref_apply_linear(scores, x, l->router, 1, m->n_expert, m->D);
    m->family->mixes ? mix_two(m, share, scores) : choose(m, l, share, scores);
    for (int i = 0; i < m->D; i++) out[i] = 0;
    for (int e = 0; e < m->n_expert; e++) {
        if (share[e] == 0) continue;
        for (int i = 0; i < m->D; i++) read[i] = m->family->shares_input ? share[e] * x[i] : x[i];
        mlp(m, NULL, 0, one, read, of_expert(l->gate, e, m->f, m->D),
            of_expert(l->up, e, m->f, m->D), of_expert(l->down, e, m->D, m->f), 1, m->f);
        for (int i = 0; i < m->D; i++) out[i] += (m->family->shares_input ? 1 : share[e]) * one[i];
    }
    if (l->shared_up.w) {
        double open = 0;
        if (l->shared_router.w) ref_apply_linear(&open, x, l->shared_router, 1, 1, m->D);
        mlp(m, NULL, 0, one, x, l->shared_gate, l->shared_up, l->shared_down, 1, m->n_shared);
        for (int i = 0; i < m->D; i++) out[i] += (l->shared_router.w ? sigmoid(open) : 1) * one[i];
    }
    free(scores);
    free(one);
}

void ref_feed_forward(const ref_pass *p, int il, double *out, const double *x) {
    const ref_model *m = p->m;
    const ref_layer *l = &m->layers[il];
    if (!l->router.w) mlp(m, p, il, out, x, l->gate, l->up, l->down, p->T, m->F);
    for (int t = 0; t < p->T && l->router.w; t++) {
        const size_t at = (size_t)t * (size_t)m->D;
        experts(m, l, out + at, x + at);
    }
}
