/* See ref_forward.h. */
#include "reference/ref_forward.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference/ref_cases.h"

typedef struct pass {
    const ref_model *m;
    ref_run *run;
    const ref_run *source;
    const ref_edit *edits;
    size_t n_edits;
    int T;
} pass;

static double *new_doubles(size_t n) {
    double *array = calloc(n, sizeof *array);
    if (!array) abort();
    return array;
}

static double *copy_doubles(const double *x, size_t n) {
    double *copy = new_doubles(n);
    memcpy(copy, x, n * sizeof *x);
    return copy;
}

/* ---- shapes ---- */

static ref_view view_of(const ref_model *m, qkv_site site, int T, double *data) {
    ref_view v = {.data = data, .n_head = 1, .n_row = T, .n_col = m->D};
    if (ref_is_map(site)) {
        v.n_head = m->H;
        v.n_col = T;
        v.head_stride = (size_t)T * (size_t)T;
        v.row_stride = (size_t)T;
        return v;
    }
    if (site == QKV_SITE_Q || site == QKV_SITE_Q_ROT || site == QKV_SITE_Z) v.n_head = m->H;
    if (ref_is_shared(site)) v.n_head = m->G;
    if (site == QKV_SITE_LOGITS) v.n_col = m->V;
    if (v.n_head > 1 || ref_is_shared(site) || site == QKV_SITE_Q || site == QKV_SITE_Q_ROT ||
        site == QKV_SITE_Z)
        v.n_col = m->d;
    v.head_stride = (size_t)v.n_col;
    v.row_stride = (size_t)v.n_head * (size_t)v.n_col;
    return v;
}

size_t ref_site_count(const ref_model *m, qkv_site site, int T) {
    const ref_view v = view_of(m, site, T, NULL);
    return (size_t)v.n_head * (size_t)v.n_row * (size_t)v.n_col;
}

/* ---- edits ---- */

static void count(ref_run *run, size_t index, ref_op op, double value, double before) {
    const int rounds = op == REF_MEAN_HEAD || op == REF_MEAN_TOKEN || op == REF_MEAN_DIM ||
                       op == REF_PATCH || op == REF_NOISE || op == REF_CLAMP;
    run->selected[index]++;
    if (rounds && fabs(value - before) < 1e-6 * (1 + fabs(before)))
        run->rounded[index]++;
    else if ((float)value != (float)before)
        run->changed[index]++;
}

/* The noise of an element of x. Query heads that see the same head of a group see the same noise,
 * unless the edit means them one by one. */
static double noise(const pass *p, const ref_edit *e, int layer, const ref_view *x, int h, int t,
                    int c) {
    const int grouped = ref_is_shared(e->site) && e->head_kind != 'h';
    return ref_noise(e, e->site == QKV_SITE_LOGITS ? p->m->n_layer : layer,
                     grouped ? h * p->m->G / x->n_head : h, t, c);
}

/* Applies one edit to the elements of `x` for which `heads` holds; `old` is x unedited. */
static void apply(const pass *p, size_t index, int layer, const ref_view *x, const ref_view *old,
                  const ref_view *pool, uint64_t heads, int counted) {
    const ref_edit *e = &p->edits[index];
    ref_view source = {0};
    if (p->source) source = view_of(p->m, e->site, p->T, p->source->site[e->site][layer]);
    for (int h = 0; h < x->n_head; h++)
        for (int t = 0; t < x->n_row; t++)
            for (int c = 0; c < x->n_col; c++) {
                if (!ref_has(heads, h) || !ref_in(e->rows, t) || !ref_in(e->cols, c)) continue;
                const double before = *ref_at(old, h, t, c);
                const double value = e->op == REF_NOISE
                                         ? before + e->a * noise(p, e, layer, x, h, t, c)
                                         : ref_edit_value(e, old, pool, &source, h, t, c);
                *ref_at(x, h, t, c) = value;
                if (counted) count(p->run, index, e->op, value, before);
            }
}

static int applies(const ref_edit *e, qkv_site site, int layer) {
    return e->site == site && (site == QKV_SITE_LOGITS || ref_has(e->layers, layer));
}

static ref_view copy_view(const ref_view *v) {
    const size_t n = (size_t)v->n_head * (size_t)v->n_row * (size_t)v->n_col;
    ref_view copy = *v;
    copy.data = copy_doubles(v->data, n);
    return copy;
}

/* Keeps what a site holds, after the edits. */
static void keep(const pass *p, qkv_site site, int layer, const double *x) {
    p->run->site[site][layer] = copy_doubles(x, ref_site_count(p->m, site, p->T));
}

static void tap(const pass *p, qkv_site site, int layer, double *data) {
    const ref_view x = view_of(p->m, site, p->T, data);
    const ref_view old = copy_view(&x);
    for (size_t i = 0; i < p->n_edits; i++)
        if (applies(&p->edits[i], site, layer))
            apply(p, i, layer, &x, &old, &old, p->edits[i].head_kind ? p->edits[i].heads : 0, 1);
    free(old.data);
    keep(p, site, layer, data);
}

/* The query heads of a set of groups. */
static uint64_t members(const ref_model *m, uint64_t groups) {
    uint64_t heads = 0;
    for (int h = 0; h < m->H; h++)
        if (ref_has(groups, h / (m->H / m->G))) heads |= (uint64_t)1 << h;
    return heads;
}

/* A site that is held per group ([T][G][d]) and seen per query head ([T][H][d]). An edit of groups
 * changes both, an edit of query heads only what these see, unless each has a group to itself. */
static void tap_shared(const pass *p, qkv_site site, int layer, double *held, double *seen) {
    const ref_view g = view_of(p->m, site, p->T, held);
    const ref_view h = view_of(p->m, QKV_SITE_Q, p->T, seen);
    const ref_view old_g = copy_view(&g), old_h = copy_view(&h);
    for (size_t i = 0; i < p->n_edits; i++) {
        const ref_edit *e = &p->edits[i];
        if (!applies(e, site, layer)) continue;
        const int per_head = e->head_kind == 'h' && p->m->H != p->m->G;
        const uint64_t set = e->head_kind ? e->heads : 0;
        if (!per_head) apply(p, i, layer, &g, &old_g, &old_g, set, 1);
        apply(p, i, layer, &h, &old_h, &old_g, per_head ? set : members(p->m, set), per_head);
    }
    free(old_g.data);
    free(old_h.data);
    keep(p, site, layer, held);
    p->run->seen[site][layer] = copy_doubles(seen, ref_site_count(p->m, QKV_SITE_Q, p->T));
}

/* ---- arithmetic ---- */

/* y [T][rows] = x [T][cols] times w [rows][cols] transposed, plus bias */
static void linear(double *y, const double *x, const float *w, const float *bias, int T, int rows,
                   int cols) {
    for (int t = 0; t < T; t++)
        for (int r = 0; r < rows; r++) {
            double sum = bias ? (double)bias[r] : 0.0;
            for (int c = 0; c < cols; c++)
                sum += x[(size_t)t * (size_t)cols + (size_t)c] *
                       (double)w[(size_t)r * (size_t)cols + (size_t)c];
            y[(size_t)t * (size_t)rows + (size_t)r] = sum;
        }
}

static void norm(const ref_model *m, double *y, const double *x, const float *weight,
                 const float *bias, int T) {
    for (int t = 0; t < T; t++) {
        const double *in = x + (size_t)t * (size_t)m->D;
        double mean = 0, square = 0;
        for (int i = 0; i < m->D && m->gpt2; i++) mean += in[i] / m->D;
        for (int i = 0; i < m->D; i++) square += (in[i] - mean) * (in[i] - mean) / m->D;
        for (int i = 0; i < m->D; i++)
            y[(size_t)t * (size_t)m->D + (size_t)i] =
                (in[i] - mean) / sqrt(square + m->norm_epsilon) * (double)weight[i] +
                (bias ? (double)bias[i] : 0.0);
    }
}

/* The channel whose wave turns `turns` times within YaRN's original context. */
static double yarn_channel(const ref_model *m, double turns) {
    const double pi = 3.14159265358979323846;
    return m->d * log(m->yarn_context / (turns * 2 * pi)) / (2 * log(m->rope_base));
}

static double rope_angle(const ref_model *m, int position, int i) {
    double angle = position * pow(m->rope_base, -2.0 * i / m->d);
    if (m->rope_divisor) angle /= (double)m->rope_divisor[i];
    const double slow = angle / m->rope_factor;
    if (!m->yarn_context) return slow;
    const double low = fmax(floor(yarn_channel(m, 32)), 0);
    const double high = fmin(ceil(yarn_channel(m, 1)), m->d - 1);
    const double ramp = fmin(fmax((i - low) / fmax(high - low, 0.001), 0), 1);
    return slow * ramp + angle * (1 - ramp);
}

/* Turns the pairs of channels (i, i + d/2). */
static void rope(const ref_model *m, double *y, const double *x, int n_head, int T) {
    const double size = m->yarn_context ? 1 + 0.1 * log(m->rope_factor) : 1;
    const int half = m->d / 2;
    memcpy(y, x, (size_t)T * (size_t)n_head * (size_t)m->d * sizeof *y);
    if (m->gpt2) return;
    for (int t = 0; t < T; t++)
        for (int h = 0; h < n_head; h++)
            for (int i = 0; i < half; i++) {
                const size_t at = ((size_t)t * (size_t)n_head + (size_t)h) * (size_t)m->d;
                const double c = size * cos(rope_angle(m, t, i));
                const double s = size * sin(rope_angle(m, t, i));
                const double a = x[at + (size_t)i], b = x[at + (size_t)(i + half)];
                y[at + (size_t)i] = a * c - b * s;
                y[at + (size_t)(i + half)] = a * s + b * c;
            }
}

/* What each query head sees of a tensor held per group. */
static void spread(const ref_model *m, double *seen, const double *held, int T) {
    for (int t = 0; t < T; t++)
        for (int h = 0; h < m->H; h++)
            memcpy(seen + ((size_t)t * (size_t)m->H + (size_t)h) * (size_t)m->d,
                   held + ((size_t)t * (size_t)m->G + (size_t)(h / (m->H / m->G))) * (size_t)m->d,
                   (size_t)m->d * sizeof *seen);
}

/* ---- the block ---- */

static void dot_scores(const pass *p, double *scores, const double *q, const double *k) {
    const ref_model *m = p->m;
    const ref_view qv = view_of(m, QKV_SITE_Q, p->T, (double *)q);
    const ref_view kv = view_of(m, QKV_SITE_Q, p->T, (double *)k);
    const ref_view s = view_of(m, QKV_SITE_SCORES, p->T, scores);
    for (int h = 0; h < m->H; h++)
        for (int i = 0; i < p->T; i++)
            for (int j = 0; j < p->T; j++) {
                double sum = 0;
                for (int c = 0; c < m->d; c++) sum += *ref_at(&qv, h, i, c) * *ref_at(&kv, h, j, c);
                *ref_at(&s, h, i, j) = sum / sqrt(m->d);
            }
}

static void softmax(const pass *p, double *pattern, const double *scores) {
    const ref_model *m = p->m;
    const ref_view s = view_of(m, QKV_SITE_SCORES, p->T, (double *)scores);
    const ref_view a = view_of(m, QKV_SITE_PATTERN, p->T, pattern);
    for (int h = 0; h < m->H; h++)
        for (int i = 0; i < p->T; i++) {
            const int first = m->window && i >= m->window ? i - m->window + 1 : 0;
            double largest = -INFINITY, sum = 0;
            for (int j = first; j <= i; j++) largest = fmax(largest, *ref_at(&s, h, i, j));
            for (int j = first; j <= i; j++) sum += exp(*ref_at(&s, h, i, j) - largest);
            for (int j = 0; j < p->T; j++)
                *ref_at(&a, h, i, j) =
                    j < first || j > i ? 0 : exp(*ref_at(&s, h, i, j) - largest) / sum;
        }
}

/* z[i] = sum over every key of pattern[i][key] v[key]: an edit may put weight above the diagonal */
static void mix(const pass *p, double *z, const double *pattern, const double *v) {
    const ref_model *m = p->m;
    const ref_view a = view_of(m, QKV_SITE_PATTERN, p->T, (double *)pattern);
    const ref_view vv = view_of(m, QKV_SITE_Q, p->T, (double *)v);
    const ref_view zv = view_of(m, QKV_SITE_Z, p->T, z);
    for (int h = 0; h < m->H; h++)
        for (int i = 0; i < p->T; i++)
            for (int c = 0; c < m->d; c++) {
                double sum = 0;
                for (int j = 0; j < p->T; j++) sum += *ref_at(&a, h, i, j) * *ref_at(&vv, h, j, c);
                *ref_at(&zv, h, i, c) = sum;
            }
}

/* out [T][D] is what attention adds, from x [T][D] */
static void attention(const pass *p, int il, double *out, const double *x) {
    const ref_model *m = p->m;
    const ref_layer *l = &m->layers[il];
    const size_t wide = (size_t)p->T * (size_t)m->H * (size_t)m->d;
    const size_t map = (size_t)m->H * (size_t)p->T * (size_t)p->T;
    double *memory = new_doubles(9 * wide + 2 * map);
    double *q = memory, *q_rot = q + wide, *k = q_rot + wide, *k_seen = k + wide;
    double *k_rot = k_seen + wide, *k_rot_seen = k_rot + wide, *v = k_rot_seen + wide;
    double *v_seen = v + wide, *z = v_seen + wide, *scores = z + wide, *pattern = scores + map;

    linear(q, x, l->wq, l->bq, p->T, m->H * m->d, m->D);
    linear(k, x, l->wk, l->bk, p->T, m->G * m->d, m->D);
    linear(v, x, l->wv, l->bv, p->T, m->G * m->d, m->D);
    spread(m, k_seen, k, p->T);
    spread(m, v_seen, v, p->T);
    tap(p, QKV_SITE_Q, il, q);
    tap_shared(p, QKV_SITE_K, il, k, k_seen);
    tap_shared(p, QKV_SITE_V, il, v, v_seen);
    rope(m, q_rot, q, m->H, p->T);
    rope(m, k_rot, k, m->G, p->T);
    rope(m, k_rot_seen, k_seen, m->H, p->T);
    tap(p, QKV_SITE_Q_ROT, il, q_rot);
    tap_shared(p, QKV_SITE_K_ROT, il, k_rot, k_rot_seen);
    dot_scores(p, scores, q_rot, k_rot_seen);
    tap(p, QKV_SITE_SCORES, il, scores);
    softmax(p, pattern, scores);
    tap(p, QKV_SITE_PATTERN, il, pattern);
    mix(p, z, pattern, v_seen);
    tap(p, QKV_SITE_Z, il, z);
    linear(out, z, l->wo, l->bo, p->T, m->D, m->H * m->d);
    tap(p, QKV_SITE_ATTN_OUT, il, out);
    free(memory);
}

static double silu(double x) {
    return x / (1 + exp(-x));
}

static double gelu_tanh(double x) {
    return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

static void feed_forward(const pass *p, int il, double *out, const double *x) {
    const ref_model *m = p->m;
    const ref_layer *l = &m->layers[il];
    const size_t n = (size_t)p->T * (size_t)m->F;
    double *up = new_doubles(n), *gate = new_doubles(n);
    linear(up, x, l->up, l->up_bias, p->T, m->F, m->D);
    if (l->gate) linear(gate, x, l->gate, l->gate_bias, p->T, m->F, m->D);
    for (size_t i = 0; i < n; i++) up[i] = l->gate ? silu(gate[i]) * up[i] : gelu_tanh(up[i]);
    linear(out, up, l->down, l->down_bias, p->T, m->D, m->F);
    tap(p, QKV_SITE_MLP_OUT, il, out);
    free(up);
    free(gate);
}

static void layer(const pass *p, int il, double *x) {
    const ref_layer *l = &p->m->layers[il];
    const size_t n = (size_t)p->T * (size_t)p->m->D;
    double *normed = new_doubles(n), *out = new_doubles(n);
    tap(p, QKV_SITE_RESID_PRE, il, x);
    norm(p->m, normed, x, l->attn_norm, l->attn_norm_bias, p->T);
    attention(p, il, out, normed);
    for (size_t i = 0; i < n; i++) x[i] += out[i];
    norm(p->m, normed, x, l->ffn_norm, l->ffn_norm_bias, p->T);
    feed_forward(p, il, out, normed);
    for (size_t i = 0; i < n; i++) x[i] += out[i];
    tap(p, QKV_SITE_RESID_POST, il, x);
    free(normed);
    free(out);
}

static void embed(const ref_model *m, double *x, const int32_t *tokens, int T) {
    for (int t = 0; t < T; t++)
        for (int i = 0; i < m->D; i++) {
            const size_t at = (size_t)t * (size_t)m->D + (size_t)i;
            x[at] = (double)m->token_embd[(size_t)tokens[t] * (size_t)m->D + (size_t)i];
            if (m->position_embd) x[at] += (double)m->position_embd[at];
        }
}

ref_run *ref_forward(const ref_model *m, const int32_t *tokens, int T, const ref_edit *edits,
                     size_t n_edits, const ref_run *source) {
    ref_run *run = calloc(1, sizeof *run);
    if (!run || m->n_layer > REF_MAX_LAYERS || n_edits > REF_MAX_EDITS) abort();
    const pass p = {m, run, source, edits, n_edits, T};
    double *x = new_doubles((size_t)T * (size_t)m->D);
    double *normed = new_doubles((size_t)T * (size_t)m->D);
    double *logits = new_doubles((size_t)T * (size_t)m->V);
    run->model = m;
    run->T = T;
    embed(m, x, tokens, T);
    for (int il = 0; il < m->n_layer; il++) layer(&p, il, x);
    norm(m, normed, x, m->output_norm, m->output_norm_bias, T);
    linear(logits, normed, m->output, NULL, T, m->V, m->D);
    tap(&p, QKV_SITE_LOGITS, 0, logits);
    free(x);
    free(normed);
    free(logits);
    return run;
}

void ref_run_free(ref_run *run) {
    if (!run) return;
    for (int s = 0; s < QKV_SITE_COUNT; s++)
        for (int il = 0; il < REF_MAX_LAYERS; il++) {
            free(run->site[s][il]);
            free(run->seen[s][il]);
        }
    free(run);
}
