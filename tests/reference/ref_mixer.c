/* Layers that mix tokens without attention: one token after the other, in plain loops. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference/ref_pass.h"

static double silu(double x) {
    return x / (1 + exp(-x));
}

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static double softplus(double x) {
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* Every channel from itself, now and in the tokens before. */
static void convolve(const ref_pass *p, const ref_mixer *w, double *out, const double *x,
                     int channels) {
    const int taps = p->m->taps;
    for (int t = 0; t < p->T; t++)
        for (int c = 0; c < channels; c++) {
            double sum = w->conv_bias ? (double)w->conv_bias[c] : 0;
            for (int back = 0; back < taps && back <= t; back++)
                sum += (double)w->conv[c * taps + taps - 1 - back] * x[(t - back) * channels + c];
            out[t * channels + c] = sum;
        }
}

static void bring_to_length(double *x, int n, double length) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] * x[i];
    for (int i = 0; i < n; i++) x[i] *= length / sqrt(sum + 1e-6);
}

/* Each of `n` rows of `width` to a mean square of 1, times weights and the SiLU of a gate. */
static void norm_heads(const ref_model *m, double *x, const float *weight, const double *gate,
                       int n, int width) {
    for (int r = 0; r < n; r++) {
        double square = 0;
        for (int i = 0; i < width; i++) square += x[r * width + i] * x[r * width + i] / width;
        for (int i = 0; i < width; i++)
            x[r * width + i] *=
                (double)weight[i] / sqrt(square + m->norm_epsilon) * silu(gate[r * width + i]);
    }
}

/* ---- gated delta-net ---- */

/* One token of one head: S [key][value] decays, forgets what it holds at k, gets v there, and is read at q. */
static void delta_step(double *s, double *out, const double *q, const double *k, const double *v,
                       double decay, double step, int keys, int values) {
    for (int j = 0; j < values; j++) {
        double held = 0, read = 0;
        for (int i = 0; i < keys; i++) s[i * values + j] *= decay;
        for (int i = 0; i < keys; i++) held += k[i] * s[i * values + j];
        for (int i = 0; i < keys; i++) s[i * values + j] += k[i] * step * (v[j] - held);
        for (int i = 0; i < keys; i++) read += q[i] * s[i * values + j];
        out[j] = read;
    }
}

/* Projections of all tokens, where alpha and beta are [T][heads] each. */
static void delta_gates(const ref_pass *p, const ref_mixer *w, const double *x, double *alpha,
                        double *beta) {
    const ref_model *m = p->m;
    const int heads = m->state_heads, shared = heads / m->groups;
    if (!w->both.w) {
        ref_apply_linear(alpha, x, w->alpha, p->T, heads, m->D);
        ref_apply_linear(beta, x, w->beta, p->T, heads, m->D);
        return;
    }
    double *both = ref_new_doubles((size_t)(p->T * 2 * heads));
    ref_apply_linear(both, x, w->both, p->T, 2 * heads, m->D);
    for (int t = 0; t < p->T; t++)
        for (int h = 0; h < heads; h++) {
            const double *own = both + t * 2 * heads + h / shared * 2 * shared;
            beta[t * heads + h] = own[h % shared];
            alpha[t * heads + h] = own[shared + h % shared];
        }
    free(both);
}

static void delta_net(const ref_pass *p, const ref_mixer *w, double *out, const double *x) {
    const ref_model *m = p->m;
    const int heads = m->state_heads, keys = m->state, values = m->inner / heads;
    const int all_keys = keys * m->groups, channels = 2 * all_keys + m->inner;
    double *memory = ref_new_doubles((size_t)(p->T * (2 * channels + 2 * m->inner + 2 * heads)));
    double *in = memory, *mixed = in + p->T * channels, *z = mixed + p->T * channels;
    double *y = z + p->T * m->inner, *alpha = y + p->T * m->inner, *beta = alpha + p->T * heads;
    double *s = ref_new_doubles((size_t)(keys * values));
    ref_apply_linear(in, x, w->in, p->T, channels, m->D);
    ref_apply_linear(z, x, w->gate, p->T, m->inner, m->D);
    delta_gates(p, w, x, alpha, beta);
    convolve(p, w, mixed, in, channels);
    for (int i = 0; i < p->T * channels; i++) mixed[i] = silu(mixed[i]);
    for (int i = 0; i < p->T * 2 * m->groups; i++) {
        const int t = i / (2 * m->groups), head = i % (2 * m->groups);
        bring_to_length(mixed + t * channels + head * keys, keys,
                        head < m->groups ? 1 / sqrt(keys) : 1);
    }
    for (int h = 0; h < heads; h++) {
        const int runs = m->family->mixer == REF_DELTA_RUNS;
        const int key_head = runs ? h / (heads / m->groups) : h % m->groups;
        memset(s, 0, (size_t)(keys * values) * sizeof *s);
        for (int t = 0; t < p->T; t++) {
            const double *q = mixed + t * channels + key_head * keys, *k = q + all_keys;
            const double a = softplus(alpha[t * heads + h] + (double)w->step_bias[h]);
            delta_step(s, y + t * m->inner + h * values, q, k,
                       mixed + t * channels + 2 * all_keys + h * values,
                       exp((double)w->decay[h] * a), sigmoid(beta[t * heads + h]), keys, values);
        }
    }
    norm_heads(m, y, w->norm, z, p->T * heads, values);
    ref_apply_linear(out, y, w->out, p->T, m->D, m->inner);
    free(memory);
    free(s);
}

/* ---- short convolutions ---- */

static void short_conv(const ref_pass *p, const ref_mixer *w, double *out, const double *x) {
    const int D = p->m->D;
    double *in = ref_new_doubles((size_t)(p->T * 5 * D));
    double *gated = in + p->T * 3 * D, *mixed = gated + p->T * D;
    ref_apply_linear(in, x, w->in, p->T, 3 * D, D);
    for (int t = 0; t < p->T; t++)
        for (int i = 0; i < D; i++)
            gated[t * D + i] = in[t * 3 * D + i] * in[t * 3 * D + 2 * D + i];
    convolve(p, w, mixed, gated, D);
    for (int t = 0; t < p->T; t++)
        for (int i = 0; i < D; i++) mixed[t * D + i] *= in[t * 3 * D + D + i];
    ref_apply_linear(out, mixed, w->out, p->T, D, D);
    free(in);
}

void ref_mix(const ref_pass *p, int il, double *out, const double *x) {
    const ref_model *m = p->m;
    double *normed = ref_new_doubles((size_t)p->T * (size_t)m->D);
    ref_apply_norm(m, normed, x, m->layers[il].attn_before, p->T, m->D, 1);
    const ref_mixer *mixer = &m->layers[il].mixer;
    m->family->mixer == REF_SHORT_CONV ? short_conv(p, mixer, out, normed)
                                       : delta_net(p, mixer, out, normed);
    free(normed);
}
