/* Attention in plain loops: see ref_pass.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference/ref_pass.h"

enum { REF_MAX_WIDTH = 256 };

/* ---- positions ---- */

/* The pair whose wave turns `turns` times within YaRN's original context. */
static double yarn_pair(const ref_rope *r, int turned, double turns) {
    const double pi = 3.14159265358979323846;
    return turned * log(r->context / (turns * 2 * pi)) / (2 * log(r->base));
}

/* How much of pair i is stretched by YaRN: 0 not at all, 1 by the whole factor. */
static double yarn_share(const ref_rope *r, int turned, int i) {
    double low = yarn_pair(r, turned, r->fast), high = yarn_pair(r, turned, r->slow);
    if (r->whole_pairs) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, turned - 1);
    return fmin(fmax((i - low) / fmax(high - low, 0.001), 0), 1);
}

/* How far pair i turns per position, in a prompt of T tokens. */
static double frequency(const ref_rope *r, int turned, int i, int T) {
    const float *divisor = r->long_divisor && T > r->context ? r->long_divisor : r->divisor;
    double f = pow(r->base, -2.0 * i / turned);
    if (divisor) f /= (double)divisor[i];
    const double stretched = f / r->factor;
    if (!r->yarn) return stretched;
    const double share = yarn_share(r, turned, i);
    return stretched * share + f * (1 - share);
}

/* Turns channels a and b of the heads of one token. */
static void turn(const ref_model *m, double *x, int n_head, int a, int b, double angle,
                 double size) {
    const double c = size * cos(angle), s = size * sin(angle);
    for (int h = 0; h < n_head; h++, x += m->d) {
        const double xa = x[a], xb = x[b];
        x[a] = xa * c - xb * s;
        x[b] = xa * s + xb * c;
    }
}

/* Channels from m->turned on stay as they are. */
static void turn_heads(const ref_pass *p, int il, double *y, int n_head) {
    const ref_model *m = p->m;
    const ref_rope *r = m->layers[il].rope;
    const size_t row = (size_t)n_head * (size_t)m->d;
    if (!r) return;
    const int half = m->turned / 2, adjacent = m->family->pairs == REF_ADJACENT;
    for (int i = 0; i < half; i++) {
        const double step = frequency(r, m->turned, i, p->T);
        for (int t = 0; t < p->T; t++)
            turn(m, y + (size_t)t * row, n_head, adjacent ? 2 * i : i,
                 adjacent ? 2 * i + 1 : i + half, t * step, r->size);
    }
}

/* What has been turned before its norm stays as it is. */
static void rotate(const ref_pass *p, int il, double *y, const double *x, int n_head) {
    memcpy(y, x, (size_t)p->T * (size_t)n_head * (size_t)p->m->d * sizeof *y);
    if (!p->m->family->norm_after_turning) turn_heads(p, il, y, n_head);
}

static void turn_before_norm(const ref_pass *p, int il, double *x, int n_head) {
    if (p->m->family->norm_after_turning) turn_heads(p, il, x, n_head);
}

/* Queries that come later are multiplied by more. */
static void temper(const ref_pass *p, int il, double *q) {
    const ref_model *m = p->m;
    const int row = m->H * m->d, unturned = m->family->tempers_unturned;
    if (unturned && m->layers[il].rope) return;
    for (int t = 0; t < p->T && m->temperature != 0; t++) {
        const int steps = (unturned ? t + 1 : t) / m->temperature_step;
        for (int i = 0; i < row; i++) q[t * row + i] *= 1 + m->temperature * log(1 + steps);
    }
}

/* Scores with queries at their places in a small cache, which ends at place a + b - 1; NULL where the
 * layer has no such edit. */
static void dot_scores(const ref_pass *p, int il, double *scores, const double *q, const double *k,
                       const double *early);

static double bias(const ref_model *m, int h, int query, int key);

/* With ALiBi queries after place `last` have the bias that they would have there. */
static double *move_bias(const ref_pass *p, int il, const double *q, const double *k,
                         const double *early, int last) {
    const ref_model *m = p->m;
    double *scores = ref_new_doubles((size_t)m->H * (size_t)p->T * (size_t)p->T);
    dot_scores(p, il, scores, q, k, early);
    const ref_view s = ref_view_of(m, QKV_SITE_SCORES, p->T, scores);
    for (int h = 0; h < m->H; h++)
        for (int i = last + 1; i < p->T; i++)
            for (int j = 0; j < p->T; j++)
                *ref_at(&s, h, i, j) += bias(m, h, last, j) - bias(m, h, i, j);
    return scores;
}

static double *move_scores(const ref_pass *p, int il, const double *q_rot, const double *k,
                           const double *early) {
    const ref_model *m = p->m;
    const ref_rope *r = m->layers[il].rope;
    const ref_edit *e = NULL;
    for (size_t i = 0; i < p->n_edits; i++)
        if (p->edits[i].op == REF_MASK_CACHE && ref_has(p->edits[i].layers, il)) e = &p->edits[i];
    if (e && m->last_slope > 0) return move_bias(p, il, q_rot, k, early, (int)e->a + (int)e->b - 1);
    if (!e || !r) return NULL;
    const size_t row = (size_t)m->H * (size_t)m->d;
    const int half = m->turned / 2, adjacent = m->family->pairs == REF_ADJACENT;
    double *q = ref_new_doubles((size_t)p->T * row);
    double *scores = ref_new_doubles((size_t)m->H * (size_t)p->T * (size_t)p->T);
    memcpy(q, q_rot, (size_t)p->T * row * sizeof *q);
    for (int t = (int)e->a + (int)e->b; t < p->T; t++)
        for (int i = 0; i < half; i++)
            turn(m, q + (size_t)t * row, m->H, adjacent ? 2 * i : i,
                 adjacent ? 2 * i + 1 : i + half,
                 ((int)e->a + (int)e->b - 1 - t) * frequency(r, m->turned, i, p->T), 1);
    dot_scores(p, il, scores, q, k, early);
    free(q);
    return scores;
}

/* ---- edits by query ---- */

static int covers(const ref_model *m, const ref_edit *e, int h) {
    return !e->head_kind || ref_has(e->heads, e->head_kind == 'g' ? h / (m->H / m->G) : h);
}

/* How many tokens the query of a head sees with edits by query: all, where it has none. */
static int late_end(const ref_pass *p, qkv_site site, int il, int h, int i) {
    for (size_t n = 0; n < p->n_edits; n++) {
        const ref_edit *e = &p->edits[n];
        if (e->site == site && ref_is_late(e->op) && ref_has(e->layers, il) && covers(p->m, e, h))
            return ref_late_seen(e->op, i);
    }
    return p->T;
}

/* What query heads see of a site without its edits by query: from what is held and seen before them. */
static double *without_late(const ref_pass *p, qkv_site site, int il, const double *held,
                            const double *seen) {
    const ref_model *m = p->m;
    const size_t n_held = ref_site_count(m, site, p->T),
                 n_seen = ref_site_count(m, QKV_SITE_Q, p->T);
    ref_edit others[REF_MAX_EDITS];
    ref_run run = {.model = m, .T = p->T};
    ref_pass early = *p;
    early.run = &run;
    early.edits = others;
    early.n_edits = 0;
    for (size_t i = 0; i < p->n_edits; i++)
        if (!ref_is_late(p->edits[i].op)) others[early.n_edits++] = p->edits[i];
    if (early.n_edits == p->n_edits) return NULL;
    double *groups = ref_new_doubles(n_held), *heads = ref_new_doubles(n_seen);
    memcpy(groups, held, n_held * sizeof *groups);
    memcpy(heads, seen, n_seen * sizeof *heads);
    ref_tap_shared(&early, site, il, groups, heads);
    free(run.site[site][il]);
    free(run.seen[site][il]);
    free(groups);
    return heads;
}

/* ---- heads ---- */

/* What each query head sees of a tensor held per group. */
static void spread(const ref_model *m, double *seen, const double *held, int T) {
    for (int t = 0; t < T; t++)
        for (int h = 0; h < m->H; h++)
            memcpy(seen + ((size_t)t * (size_t)m->H + (size_t)h) * (size_t)m->d,
                   held + ((size_t)t * (size_t)m->G + (size_t)(h / (m->H / m->G))) * (size_t)m->d,
                   (size_t)m->d * sizeof *seen);
}

static void norm_heads(const ref_pass *p, double *x, ref_norm norm, int n_head) {
    const ref_model *m = p->m;
    const ref_head_norm kind = m->family->head_norm;
    if (kind == REF_ALL_HEADS)
        ref_apply_norm(m, x, x, norm, p->T, n_head * m->d, 1);
    else
        ref_apply_norm(m, x, x, norm, p->T * n_head, m->d, kind == REF_OWN_WEIGHTS ? n_head : 1);
}

static void limit_heads(const ref_pass *p, double *x, int n_head) {
    const double limit = p->m->head_limit;
    for (int i = 0; limit > 0 && i < p->T * n_head * p->m->d; i++)
        x[i] = fmin(fmax(x[i], -limit), limit);
}

/* Heads that are seen per query head, with weights that are held per group. */
static void norm_seen(const ref_pass *p, double *x, ref_norm norm) {
    const ref_model *m = p->m;
    const int own = m->family->head_norm == REF_OWN_WEIGHTS, group = m->H / m->G;
    for (int i = 0; i < p->T * m->H && norm.weight; i++, x += m->d) {
        const size_t first = own ? (size_t)(i % m->H / group) * (size_t)m->d : 0;
        const ref_norm one = {norm.weight + first, norm.bias ? norm.bias + first : NULL};
        ref_apply_norm(m, x, x, one, 1, m->d, 1);
    }
}

/* ---- ALiBi ---- */

/* As the paper has it: for n = 2^k heads the slopes are a geometric series that begins with its ratio. For
 * other n those of the next smaller 2^k, and after them every other one of those of 2^(k + 1). */
static double slope(const ref_model *m, int n, int h) {
    int power = 1;
    while (power * 2 <= n) power *= 2;
    if (power == n) return pow(pow(2, -m->last_slope / n), h + 1);
    return h < power ? slope(m, power, h) : slope(m, 2 * power, 2 * (h - power));
}

/* What a query adds to the score of a key by the distance between them. */
static double bias(const ref_model *m, int h, int query, int key) {
    return m->last_slope > 0 ? slope(m, m->H, h) * (key - query) : 0;
}

/* ---- weights ---- */

/* `early` are keys without edits by query; may be NULL. */
static void dot_scores(const ref_pass *p, int il, double *scores, const double *q, const double *k,
                       const double *early) {
    const ref_model *m = p->m;
    const ref_view qv = ref_view_of(m, QKV_SITE_Q, p->T, (double *)q);
    const ref_view late = ref_view_of(m, QKV_SITE_Q, p->T, (double *)k);
    const ref_view plain = ref_view_of(m, QKV_SITE_Q, p->T, (double *)early);
    const ref_view s = ref_view_of(m, QKV_SITE_SCORES, p->T, scores);
    for (int h = 0; h < m->H; h++)
        for (int i = 0; i < p->T; i++)
            for (int j = 0; j < p->T; j++) {
                const int is_plain =
                    early && j >= late_end(p, QKV_SITE_K_ROT, m->layers[il].kv_layer, h, i);
                const ref_view *kv = is_plain ? &plain : &late;
                double sum = 0;
                for (int c = 0; c < m->d; c++) sum += *ref_at(&qv, h, i, c) * *ref_at(kv, h, j, c);
                *ref_at(&s, h, i, j) =
                    ref_capped(sum * m->score_scale, m->score_cap) + bias(m, h, i, j);
            }
}

ref_range ref_visible(const ref_pass *p, int il, int i) {
    const int window = p->m->layers[il].window;
    int begin = window && i >= window ? i - window + 1 : 0;
    if (p->m->family->chunked && window) begin = i / window * window;
    if (!p->m->family->encoder) return (ref_range){begin, i + 1};
    return (ref_range){begin, window && i + window < p->T ? i + window : p->T};
}

/* A sink takes its share of a row and has no column. */
static void softmax_row(double *out, const double *scores, int n, ref_range keys,
                        const float *sink) {
    double largest = sink ? (double)*sink : -INFINITY;
    for (int j = keys.begin; j < keys.end; j++) largest = fmax(largest, scores[j]);
    double sum = sink ? exp((double)*sink - largest) : 0;
    for (int j = keys.begin; j < keys.end; j++) sum += exp(scores[j] - largest);
    for (int j = 0; j < n; j++)
        out[j] = j < keys.begin || j >= keys.end ? 0 : exp(scores[j] - largest) / sum;
}

static void softmax(const ref_pass *p, int il, double *pattern, const double *scores) {
    const ref_model *m = p->m;
    const float *sinks = m->layers[il].sinks;
    const ref_view s = ref_view_of(m, QKV_SITE_SCORES, p->T, (double *)scores);
    const ref_view a = ref_view_of(m, QKV_SITE_PATTERN, p->T, pattern);
    for (int h = 0; h < m->H; h++)
        for (int i = 0; i < p->T; i++)
            softmax_row(ref_at(&a, h, i, 0), ref_at(&s, h, i, 0), p->T, ref_visible(p, il, i),
                        sinks ? &sinks[h] : NULL);
}

/* z[i] = sum over every key of pattern[i][key] v[key]: an edit may put weight where the mask has
 * none */
static void mix(const ref_pass *p, int il, double *z, const double *pattern, const double *v,
                const double *early) {
    const ref_model *m = p->m;
    const ref_view a = ref_view_of(m, QKV_SITE_PATTERN, p->T, (double *)pattern);
    const ref_view late = ref_view_of(m, QKV_SITE_Q, p->T, (double *)v);
    const ref_view plain = ref_view_of(m, QKV_SITE_Q, p->T, (double *)early);
    const ref_view zv = ref_view_of(m, QKV_SITE_Z, p->T, z);
    for (int h = 0; h < m->H; h++)
        for (int i = 0; i < p->T; i++)
            for (int c = 0; c < m->d; c++) {
                double sum = 0;
                for (int j = 0; j < p->T; j++) {
                    const int is_plain =
                        early && j >= late_end(p, QKV_SITE_V, m->layers[il].kv_layer, h, i);
                    sum += *ref_at(&a, h, i, j) * *ref_at(is_plain ? &plain : &late, h, j, c);
                }
                *ref_at(&zv, h, i, c) = sum;
            }
}

/* ---- the block ---- */

/* The layer's input once for each of n heads: [T][n][D]. */
static double *repeat_input(const ref_pass *p, const double *x, int n) {
    const size_t D = (size_t)p->m->D;
    double *out = ref_new_doubles((size_t)p->T * (size_t)n * D);
    for (int t = 0; t < p->T; t++)
        for (int h = 0; h < n; h++)
            memcpy(out + ((size_t)t * (size_t)n + (size_t)h) * D, x + (size_t)t * D,
                   D * sizeof *out);
    return out;
}

/* y [T][n][d]: each of n heads from its own input x [T][n][D], which is normalised first. `shared` heads
 * have one head's rows of the weights. */
static void project_heads(const ref_pass *p, int il, double *y, double *x, ref_linear l, int n,
                          int shared) {
    const ref_model *m = p->m;
    const size_t D = (size_t)m->D, d = (size_t)m->d;
    ref_apply_norm(m, x, x, m->layers[il].attn_before, p->T * n, m->D, 1);
    for (int i = 0; i < p->T * n; i++) {
        const size_t row = (size_t)(i % n / shared) * d;
        const ref_linear own = {l.w + row * D, l.b ? l.b + row : NULL};
        ref_apply_linear(y + (size_t)i * d, x + (size_t)i * D, own, 1, m->d, m->D);
    }
}

/* Does an edit give query heads inputs of their own? */
static int splits_input(const ref_pass *p, qkv_site in) {
    for (size_t i = 0; i < p->n_edits; i++)
        if (p->edits[i].site == in && p->edits[i].head_kind == 'h') return 1;
    return 0;
}

/* k or v as held per group and as seen per query head. A norm over all heads is that of the groups. */
static void project_shared(const ref_pass *p, qkv_site in, int il, const double *x, ref_linear l,
                           ref_norm norm, double *held, double *seen) {
    const ref_model *m = p->m;
    double *held_in = repeat_input(p, x, m->G), *seen_in = repeat_input(p, x, m->H);
    ref_tap_shared(p, in, il, held_in, seen_in);
    project_heads(p, il, held, held_in, l, m->G, 1);
    if (in == QKV_SITE_K_IN) turn_before_norm(p, il, held, m->G);
    norm_heads(p, held, norm, m->G);
    limit_heads(p, held, m->G);
    if (!splits_input(p, in) || (m->family->head_norm == REF_ALL_HEADS && norm.weight)) {
        spread(m, seen, held, p->T);
    } else {
        project_heads(p, il, seen, seen_in, l, m->H, m->H / m->G);
        if (in == QKV_SITE_K_IN) turn_before_norm(p, il, seen, m->H);
        norm_seen(p, seen, norm);
        limit_heads(p, seen, m->H);
    }
    free(held_in);
    free(seen_in);
}

/* Values are normalised by ones, if at all. */
static ref_norm value_norm(const ref_model *m) {
    static float ones[REF_MAX_WIDTH];
    for (int i = 0; i < REF_MAX_WIDTH; i++) ones[i] = 1;
    if (m->d > REF_MAX_WIDTH) abort();
    return (ref_norm){m->family->bare_values ? ones : NULL, NULL};
}

static void project(const ref_pass *p, int il, const double *x, double *q, double *k,
                    double *k_seen, double *v, double *v_seen) {
    const ref_model *m = p->m;
    const ref_layer *l = &m->layers[il];
    double *q_in = repeat_input(p, x, m->H);
    ref_tap(p, QKV_SITE_Q_IN, il, q_in);
    project_heads(p, il, q, q_in, l->q, m->H, 1);
    turn_before_norm(p, il, q, m->H);
    norm_heads(p, q, l->q_norm, m->H);
    limit_heads(p, q, m->H);
    free(q_in);
    if (l->kv_layer != il) return;
    project_shared(p, QKV_SITE_K_IN, il, x, l->k, l->k_norm, k, k_seen);
    project_shared(p, QKV_SITE_V_IN, il, x, l->v, value_norm(m), v, v_seen);
}

void ref_attention(const ref_pass *p, int il, double *out, const double *x) {
    const ref_model *m = p->m;
    const size_t wide = (size_t)p->T * (size_t)m->H * (size_t)m->d;
    const size_t map = (size_t)m->H * (size_t)p->T * (size_t)p->T;
    double *memory = ref_new_doubles(9 * wide + 2 * map);
    double *q = memory, *q_rot = q + wide, *k = q_rot + wide, *k_seen = k + wide;
    double *k_rot = k_seen + wide, *k_rot_seen = k_rot + wide, *v = k_rot_seen + wide;
    double *v_seen = v + wide, *z = v_seen + wide, *scores = z + wide, *pattern = scores + map;

    const int held = m->layers[il].kv_layer;
    project(p, il, x, q, k, k_seen, v, v_seen);
    ref_tap(p, QKV_SITE_Q, il, q);
    rotate(p, il, q_rot, q, m->H);
    temper(p, il, q_rot);
    ref_tap(p, QKV_SITE_Q_ROT, il, q_rot);
    if (held == il) {
        ref_tap_shared(p, QKV_SITE_K, il, k, k_seen);
        p->run->early[1][il] = without_late(p, QKV_SITE_V, il, v, v_seen);
        ref_tap_shared(p, QKV_SITE_V, il, v, v_seen);
        rotate(p, il, k_rot, k, m->G);
        rotate(p, il, k_rot_seen, k_seen, m->H);
        p->run->early[0][il] = without_late(p, QKV_SITE_K_ROT, il, k_rot, k_rot_seen);
        ref_tap_shared(p, QKV_SITE_K_ROT, il, k_rot, k_rot_seen);
    } else {
        memcpy(k_rot_seen, p->run->seen[QKV_SITE_K_ROT][held], wide * sizeof *k_rot_seen);
        memcpy(v_seen, p->run->seen[QKV_SITE_V][held], wide * sizeof *v_seen);
    }
    const double *early_k = p->run->early[0][held], *early_v = p->run->early[1][held];
    dot_scores(p, il, scores, q_rot, k_rot_seen, early_k);
    double *moved = move_scores(p, il, q_rot, k_rot_seen, early_k);
    ref_pass with_moved = *p;
    with_moved.moved = moved;
    ref_tap(&with_moved, QKV_SITE_SCORES, il, scores);
    softmax(p, il, pattern, scores);
    ref_tap(p, QKV_SITE_PATTERN, il, pattern);
    mix(p, il, z, pattern, v_seen, early_v);
    ref_tap(p, QKV_SITE_Z, il, z);
    ref_apply_linear(out, z, m->layers[il].o, p->T, m->D, m->H * m->d);
    free(moved);
    free(memory);
}
