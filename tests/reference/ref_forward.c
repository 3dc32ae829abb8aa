/* See ref_forward.h. Attention and the feed-forward have files of their own. */
#include "reference/ref_forward.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference/ref_other.h"

void ref_apply_linear(double *y, const double *x, ref_linear l, int T, int rows, int cols) {
    for (int t = 0; t < T; t++)
        for (int r = 0; r < rows; r++) {
            double sum = l.b ? (double)l.b[r] : 0.0;
            for (int c = 0; c < cols; c++)
                sum += x[(size_t)t * (size_t)cols + (size_t)c] *
                       (double)l.w[(size_t)r * (size_t)cols + (size_t)c];
            y[(size_t)t * (size_t)rows + (size_t)r] = sum;
        }
}

void ref_apply_norm(const ref_model *m, double *y, const double *x, ref_norm norm, int n, int width,
                    int n_weights) {
    if (y != x) memcpy(y, x, (size_t)n * (size_t)width * sizeof *y);
    for (int r = 0; r < n && norm.weight; r++, y += width) {
        const size_t first = (size_t)(r % n_weights) * (size_t)width;
        double mean = 0, square = 0;
        for (int i = 0; i < width && m->family->norm == REF_LAYER; i++) mean += y[i] / width;
        for (int i = 0; i < width; i++) square += (y[i] - mean) * (y[i] - mean) / width;
        for (int i = 0; i < width; i++)
            y[i] = (y[i] - mean) / sqrt(square + m->norm_epsilon) *
                       (double)norm.weight[first + (size_t)i] +
                   (norm.bias ? (double)norm.bias[first + (size_t)i] : 0.0);
    }
}

double ref_capped(double x, double cap) {
    return cap > 0 ? cap * tanh(x / cap) : x;
}

static void norm_residual(const ref_pass *p, double *y, const double *x, ref_norm norm) {
    ref_apply_norm(p->m, y, x, norm, p->T, p->m->D, 1);
}

/* ---- a layer ---- */

/* What a block gives becomes what it adds to x, seen at `site`; then it is added. */
static void add_block(const ref_pass *p, qkv_site site, int il, double *x, double *out,
                      ref_norm after, ref_norm sum) {
    const size_t n = (size_t)p->T * (size_t)p->m->D;
    norm_residual(p, out, out, after);
    for (size_t i = 0; i < n; i++) out[i] *= p->m->residual_scale;
    ref_tap(p, site, il, out);
    for (size_t i = 0; i < n; i++) x[i] += out[i];
    norm_residual(p, x, x, sum);
}

/* What a layer's own embeddings of the tokens add: a gate of x that they open, projected back. */
static void add_own(const ref_pass *p, const ref_layer *l, int il, double *x) {
    const ref_model *m = p->m;
    const size_t n = (size_t)p->T * (size_t)m->n_own;
    if (!l->own_gate.w) return;
    double *gate = ref_new_doubles(n), *out = ref_new_doubles((size_t)p->T * (size_t)m->D);
    ref_apply_linear(gate, x, l->own_gate, p->T, m->n_own, m->D);
    for (int t = 0; t < p->T; t++)
        for (int i = 0; i < m->n_own; i++) {
            double *g = &gate[(size_t)t * (size_t)m->n_own + (size_t)i];
            *g = ref_activated(m->activation, *g) *
                 p->own[((size_t)t * (size_t)m->n_layer + (size_t)il) * (size_t)m->n_own +
                        (size_t)i];
        }
    ref_apply_linear(out, gate, l->own_proj, p->T, m->D, m->n_own);
    norm_residual(p, out, out, l->own_norm);
    for (size_t i = 0; i < (size_t)p->T * (size_t)m->D; i++) x[i] += out[i];
    free(gate);
    free(out);
}

static void layer(const ref_pass *whole, int il, double *x) {
    const ref_model model = ref_in_layer(whole->m, il);
    ref_pass own = *whole;
    const ref_pass *p = &own;
    own.m = &model;
    const ref_layer *l = &p->m->layers[il];
    const size_t n = (size_t)p->T * (size_t)p->m->D;
    double *normed = ref_new_doubles(n), *out = ref_new_doubles(n), *input = ref_new_doubles(n);
    ref_tap(p, QKV_SITE_RESID_PRE, il, x);
    memcpy(input, x, n * sizeof *x);
    ref_attention(p, il, out, x);
    add_block(p, QKV_SITE_ATTN_OUT, il, x, out, l->attn_after, l->attn_sum);
    norm_residual(p, normed, p->m->parallel ? input : x, l->ffn_before);
    ref_feed_forward(p, il, out, normed);
    add_block(p, QKV_SITE_MLP_OUT, il, x, out, l->ffn_after, l->ffn_sum);
    add_own(p, l, il, x);
    for (size_t i = 0; i < n && l->scale; i++) x[i] *= (double)*l->scale;
    ref_tap(p, QKV_SITE_RESID_POST, il, x);
    free(normed);
    free(out);
    free(input);
}

/* ---- ends ---- */

/* The layers' own embeddings of the tokens, joined with a projection of the usual ones x: [T][n_layer][p]. */
static double *embed_own(const ref_pass *p, const double *x, const int32_t *tokens) {
    const ref_model *m = p->m;
    const int n = m->n_layer * m->n_own;
    double *own = ref_new_doubles((size_t)p->T * (size_t)n);
    if (!n) return own;
    ref_apply_linear(own, x, m->own_model_proj, p->T, n, m->D);
    for (int i = 0; i < p->T * n; i++) own[i] /= sqrt(m->D);
    ref_apply_norm(m, own, own, m->own_model_norm, p->T * m->n_layer, m->n_own, 1);
    for (int t = 0; t < p->T; t++)
        for (int i = 0; i < n; i++) {
            const size_t at = (size_t)t * (size_t)n + (size_t)i;
            const double token = (double)m->own_embd[(size_t)tokens[t] * (size_t)n + (size_t)i];
            own[at] = (own[at] + token * sqrt(m->n_own)) / sqrt(2);
        }
    return own;
}

static void embed(const ref_pass *p, double *x, const int32_t *tokens) {
    const ref_model *m = p->m;
    for (int t = 0; t < p->T; t++)
        for (int i = 0; i < m->D; i++) {
            const size_t at = (size_t)t * (size_t)m->D + (size_t)i;
            x[at] = (double)m->token_embd[(size_t)tokens[t] * (size_t)m->D + (size_t)i] *
                    m->embedding_scale;
            if (m->token_type) x[at] += (double)m->token_type[i];
            if (m->position_embd) x[at] += (double)m->position_embd[at];
        }
    norm_residual(p, x, x, m->embd_norm);
}

static void predict(const ref_pass *p, double *x) {
    const ref_model *m = p->m;
    const size_t n = (size_t)p->T * (size_t)m->V;
    if (!m->output_norm.weight) return;
    norm_residual(p, x, x, m->output_norm);
    ref_tap(p, QKV_SITE_FINAL_NORM, 0, x);
    if (!m->output.w) return;
    double *logits = ref_new_doubles(n);
    ref_apply_linear(logits, x, m->output, p->T, m->V, m->D);
    for (size_t i = 0; i < n; i++) logits[i] = ref_capped(logits[i] * m->logit_scale, m->logit_cap);
    ref_tap(p, QKV_SITE_LOGITS, 0, logits);
    free(logits);
}

ref_run *ref_forward(const ref_model *m, const int32_t *tokens, int T, const ref_edit *edits,
                     size_t n_edits, const ref_run *source) {
    return ref_forward_frozen(m, tokens, T, edits, n_edits, source, NULL);
}

ref_run *ref_forward_frozen(const ref_model *m, const int32_t *tokens, int T, const ref_edit *edits,
                            size_t n_edits, const ref_run *source, const ref_run *frozen) {
    ref_run *run = calloc(1, sizeof *run);
    if (!run || m->n_layer > REF_MAX_LAYERS || n_edits > REF_MAX_EDITS) abort();
    ref_others_need(m, tokens, T, edits, n_edits);
    ref_pass p = {m, run, source, frozen, edits, n_edits, T, NULL, NULL};
    double *x = ref_new_doubles((size_t)T * (size_t)m->D);
    run->model = m;
    run->T = T;
    embed(&p, x, tokens);
    p.own = embed_own(&p, x, tokens);
    for (int il = 0; il < m->n_layer; il++) layer(&p, il, x);
    predict(&p, x);
    free(p.own);
    free(x);
    return run;
}

void ref_run_free(ref_run *run) {
    if (!run) return;
    for (int s = 0; s < QKV_SITE_COUNT; s++)
        for (int il = 0; il < REF_MAX_LAYERS; il++) {
            free(run->site[s][il]);
            free(run->seen[s][il]);
            if (s < 2) free(run->early[s][il]);
        }
    free(run);
}
