/* Edits and what is kept of a pass: see ref_pass.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference/ref_cases.h"
#include "reference/ref_other.h"

double *ref_new_doubles(size_t n) {
    double *array = calloc(n, sizeof *array);
    if (!array) abort();
    return array;
}

static double *copy_doubles(const double *x, size_t n) {
    double *copy = ref_new_doubles(n);
    memcpy(copy, x, n * sizeof *x);
    return copy;
}

/* ---- shapes ---- */

ref_view ref_view_of(const ref_model *m, qkv_site site, int T, double *data) {
    ref_view v = {.data = data, .n_head = 1, .n_row = T, .n_col = m->D};
    if (ref_is_map(site)) {
        v.n_head = m->H;
        v.n_col = T;
        v.head_stride = (size_t)T * (size_t)T;
        v.row_stride = (size_t)T;
        return v;
    }
    if (site == QKV_SITE_Q || site == QKV_SITE_Q_ROT || site == QKV_SITE_Z || site == QKV_SITE_GATE)
        v.n_head = m->H;
    if (ref_is_shared(site)) v.n_head = m->G;
    if (site == QKV_SITE_Q_IN) v.n_head = m->H;
    if (site == QKV_SITE_LOGITS) v.n_col = m->V;
    if (site == QKV_SITE_MLP_ACT) v.n_col = m->F;
    if (!ref_is_input(site) &&
        (v.n_head > 1 || ref_is_shared(site) || site == QKV_SITE_Q || site == QKV_SITE_Q_ROT ||
         site == QKV_SITE_Z || site == QKV_SITE_GATE))
        v.n_col = m->d;
    v.head_stride = (size_t)v.n_col;
    v.row_stride = (size_t)v.n_head * (size_t)v.n_col;
    return v;
}

size_t ref_site_count(const ref_model *m, qkv_site site, int T) {
    const ref_view v = ref_view_of(m, site, T, NULL);
    return (size_t)v.n_head * (size_t)v.n_row * (size_t)v.n_col;
}

/* ---- edits ---- */

static void count(ref_run *run, size_t index, ref_op op, double value, double before) {
    const int rounds = op == REF_MEAN_HEAD || op == REF_MEAN_OTHERS || op == REF_MEAN_TOKEN ||
                       op == REF_MEAN_DIM || op == REF_PATCH || op == REF_NOISE ||
                       op == REF_CLAMP || op == REF_QUANT_CHANNEL || op == REF_QUANT_TOKEN ||
                       op == REF_QUANT_EVERY || ref_is_late(op) || op == REF_REMOVE_VECTOR ||
                       op == REF_FREEZE || ref_takes_other(op);
    run->selected[index]++;
    if (rounds && fabs(value - before) < 1e-6 * (1 + fabs(before)))
        run->rounded[index]++;
    else if ((float)value != (float)before)
        run->changed[index]++;
}

/* The noise of an element of x. Query heads that see the same head of a group see the same noise,
 * unless the edit means them one by one. */
static double noise(const ref_pass *p, const ref_edit *e, int layer, const ref_view *x, int h,
                    int t, int c) {
    const int grouped = ref_is_shared(e->site) && e->head_kind != 'h';
    return ref_noise(e, ref_has_layer(e->site) ? layer : p->m->n_layer,
                     grouped ? h * p->m->G / x->n_head : h, t, c);
}

/* A score that positions within the cache leave as it is, change, or hide. */
static double in_cache(const ref_pass *p, const ref_edit *e, const ref_view *old, int h, int t,
                       int c) {
    const double plain = ref_edit_value(e, old, NULL, h, t, c);
    if (isinf(plain) || c >= (int)e->a || t < (int)e->a + (int)e->b) return plain;
    return p->moved ? p->moved[((size_t)h * (size_t)p->T + (size_t)t) * (size_t)p->T + (size_t)c]
                    : plain;
}

/* Applies one edit to the elements of `x` for which `heads` holds; `old` is x unedited. */
static void apply(const ref_pass *p, size_t index, int layer, const ref_view *x,
                  const ref_view *old, uint64_t heads, int counted) {
    const ref_edit *e = &p->edits[index];
    ref_view source = {0};
    const ref_run *from = e->op == REF_FREEZE ? p->frozen : p->source;
    if (from) source = ref_view_of(p->m, e->site, p->T, from->site[e->site][layer]);
    const int compresses = ref_is_compression(e->op);
    double *compressed = ref_new_doubles((size_t)x->n_row * (size_t)x->n_col);
    for (int h = 0; h < x->n_head; h++) {
        if (compresses) ref_compress(p, e, layer, old, h, compressed);
        for (int t = 0; t < x->n_row; t++)
            for (int c = 0; c < x->n_col; c++) {
                if (!ref_has(heads, h) || !ref_in(e->rows, t) || !ref_in(e->cols, c) ||
                    !ref_in(e->channels, c))
                    continue;
                if (e->site == QKV_SITE_SCORES && !ref_in(ref_visible(p, layer, t), c)) {
                    p->run->selected[index]++;
                    continue;
                }
                const double before = *ref_at(old, h, t, c);
                const double value =
                    compresses                ? compressed[t * x->n_col + c]
                    : e->op == REF_MASK_CACHE ? in_cache(p, e, old, h, t, c)
                    : e->op == REF_NOISE      ? before + e->a * noise(p, e, layer, x, h, t, c)
                    : ref_takes_other(e->op)  ? ref_other_value(p, e, layer, x->n_head, h, t, c)
                                              : ref_edit_value(e, old, &source, h, t, c);
                *ref_at(x, h, t, c) = value;
                if (counted) count(p->run, index, e->op, value, before);
            }
    }
    free(compressed);
}

static int applies(const ref_edit *e, qkv_site site, int layer) {
    return e->site == site && (!ref_has_layer(site) || ref_has(e->layers, layer));
}

static ref_view copy_view(const ref_view *v) {
    const size_t n = (size_t)v->n_head * (size_t)v->n_row * (size_t)v->n_col;
    ref_view copy = *v;
    copy.data = copy_doubles(v->data, n);
    return copy;
}

/* Keeps what a site holds, after the edits. */
static void keep(const ref_pass *p, qkv_site site, int layer, const double *x) {
    p->run->site[site][layer] = copy_doubles(x, ref_site_count(p->m, site, p->T));
}

void ref_tap(const ref_pass *p, qkv_site site, int layer, double *data) {
    const ref_view x = ref_view_of(p->m, site, p->T, data);
    const ref_view old = copy_view(&x);
    for (size_t i = 0; i < p->n_edits; i++)
        if (applies(&p->edits[i], site, layer))
            apply(p, i, layer, &x, &old, p->edits[i].head_kind ? p->edits[i].heads : 0, 1);
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

/* A site that is held per group ([T][G][d]) and seen per query head ([T][H][d]); of inputs, D wide. An edit of groups
 * changes both, an edit of query heads only what these see, unless each has a group to itself. */
void ref_tap_shared(const ref_pass *p, qkv_site site, int layer, double *held, double *seen) {
    const ref_view g = ref_view_of(p->m, site, p->T, held);
    const ref_view h = ref_view_of(p->m, ref_seen_like(site), p->T, seen);
    const ref_view old_g = copy_view(&g);
    ref_view old_h = copy_view(&h);
    old_h.n_alike = p->m->H / p->m->G; /* which an edit before may have told apart */
    for (size_t i = 0; i < p->n_edits; i++) {
        const ref_edit *e = &p->edits[i];
        if (!applies(e, site, layer)) continue;
        const int per_head = e->head_kind == 'h' && p->m->H != p->m->G;
        const uint64_t set = e->head_kind ? e->heads : 0;
        if (!per_head) apply(p, i, layer, &g, &old_g, set, 1);
        apply(p, i, layer, &h, &old_h, per_head ? set : members(p->m, set), per_head);
    }
    free(old_g.data);
    free(old_h.data);
    keep(p, site, layer, held);
    p->run->seen[site][layer] = copy_doubles(seen, ref_site_count(p->m, ref_seen_like(site), p->T));
}
