/* See walk_judge.h. */
#include "walk_judge.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference/ref_cases.h"
#include "reference/ref_other.h"
#include "run/run.h"
#include "support/compare.h"
#include "support/judge.h"
#include "support/reduced.h"

void walk_fail(const char *format, ...) {
    char message[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    printf("  %s\n", message);
    va_end(values);
    fflush(stdout);
    _Exit(1);
}

/* ---- what is true ---- */

static ref_run *run_variant(const walk_truth *truth, size_t variant) {
    const walk_case *c = truth->of;
    const walk_variant *v = &c->variants[variant - 1];
    return ref_forward_frozen(c->model->ref, c->tokens, c->T, v->edits, v->n, truth->source,
                              truth->runs[0]);
}

void walk_truth_open(walk_truth *truth, const walk_case *c) {
    *truth = (walk_truth){.of = c, .tensors = truth->tensors, .shaky = truth->shaky};
    truth->runs[0] = ref_forward(c->model->ref, c->tokens, c->T, NULL, 0, NULL);
    truth->source = ref_forward(c->model->ref, c->other, c->T, NULL, 0, NULL);
    for (size_t v = 1; v <= c->n_variants; v++) truth->runs[v] = run_variant(truth, v);
}

void walk_truth_close(walk_truth *truth) {
    for (size_t v = 0; v <= truth->of->n_variants; v++) ref_run_free(truth->runs[v]);
    ref_run_free(truth->source);
}

/* ---- one tensor ---- */

/* Which tensor, and of whom. */
typedef struct place {
    size_t variant;
    qkv_site site;
    int layer;
    const qkv_plan *plan; /* which says the tokens of sites without a layer */
} place;

static const char *variant_text(const walk_case *c, size_t variant) {
    return variant ? c->texts[variant - 1] : "the baseline";
}

static double distance(double a, double b) {
    if (isinf(a) && isinf(b) && (a > 0) == (b > 0)) return 0;
    return isfinite(a) && isfinite(b) ? fabs(a - b) : INFINITY;
}

static double scale_of(const double *values, size_t n) {
    double scale = 1;
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i])) scale = fmax(scale, fabs(values[i]));
    return scale;
}

/* The tokens that the tensor has rows for. */
static int list_tokens(const place *p, int T, int *tokens) {
    int n = 0;
    for (int t = 0; t < T; t++)
        if (ref_has_layer(p->site) || qkv_plan_wants_token(p->plan, p->site, (size_t)t))
            tokens[n++] = t;
    return n;
}

/* The reference's tensor as the capture counts heads, in the shape of its layer. */
static ref_view view_of(const ref_run *run, const place *p, const qkv_tensor *t) {
    const int seen = ref_is_shared(p->site) && t->head_kind == 'h';
    const ref_model own = ref_has_layer(p->site) ? ref_in_layer(run->model, p->layer) : *run->model;
    return ref_view_of(&own, seen ? ref_seen_like(p->site) : p->site, run->T,
                       seen ? run->seen[p->site][p->layer] : run->site[p->site][p->layer]);
}

/* How far the tensor is from the reference's, in parts of the largest value of the latter. */
static double error_of(const ref_run *run, const place *p, const qkv_tensor *t) {
    const ref_view v = view_of(run, p, t);
    int tokens[WALK_TOKENS];
    const int rows = list_tokens(p, run->T, tokens), heads = t->n_heads ? t->n_heads : 1;
    const int cols = (int)t->shape[t->n_dims - 1], is_map = ref_is_map(p->site);
    const double scale = scale_of(v.data, (size_t)v.n_head * (size_t)v.n_row * (size_t)v.n_col);
    double worst = 0;
    if (t->shape[is_map ? 1 : 0] != rows || cols != (t->n_channels ? t->n_channels : v.n_col))
        return INFINITY;
    for (int h = 0; h < heads; h++)
        for (int r = 0; r < rows; r++)
            for (int k = 0; k < cols; k++) {
                const int at = is_map ? (h * rows + r) * cols + k : (r * heads + h) * cols + k;
                const double expected = *ref_at(&v, t->n_heads ? t->heads[h] : 0, tokens[r],
                                                t->n_channels ? (int)t->channels[k] : k);
                worst = fmax(worst, distance((double)t->data[at], expected) / scale);
            }
    return worst;
}

static double error_of_reduced(const ref_run *run, const place *p, const qkv_tensor *t) {
    const size_t T = (size_t)run->T;
    const int side = (int)t->shape[t->n_dims - 1], rows = t->n_dims == 3 ? side : 1;
    float *map = calloc(T * T, sizeof *map);
    const float *value = t->data;
    double worst = 0;
    if (!map) abort();
    for (int h = 0; h < t->n_heads; h++) {
        const double *pattern = run->site[QKV_SITE_PATTERN][p->layer] + (size_t)t->heads[h] * T * T;
        for (size_t i = 0; i < T * T; i++) map[i] = (float)pattern[i];
        const double scale = scale_of(pattern, T * T);
        for (int r = 0; r < rows; r++)
            for (int k = 0; k < side; k++) {
                const double expected = reduced_cell(map, run->T, t->reduction, side, r, k);
                const double size = fmax(scale, fabs(expected));
                worst = fmax(worst, distance((double)*value++, expected) / size);
            }
    }
    free(map);
    return worst;
}

static double error_at(const ref_run *run, const place *p, const qkv_tensor *t) {
    return t->reduction ? error_of_reduced(run, p, t) : error_of(run, p, t);
}

/* ---- how sure the reference is ---- */

/* Another run, with embeddings that differ in the last digits of single precision. Where it differs much,
 * the edits choose between values that are all but equal. */
static ref_run *run_changed(const walk_truth *truth, size_t variant, uint64_t seed) {
    const ref_model *m = truth->of->model->ref;
    const size_t n = (size_t)m->V * (size_t)m->D;
    float *kept = malloc(n * sizeof *kept);
    dice d = {seed};
    if (!kept) abort();
    memcpy(kept, m->token_embd, n * sizeof *kept);
    for (size_t i = 0; i < n; i++) m->token_embd[i] *= (float)(1 + 1e-6 * dice_normal(&d));
    walk_truth changed = {.of = truth->of};
    changed.runs[0] = ref_forward(m, truth->of->tokens, truth->of->T, NULL, 0, NULL);
    changed.source = ref_forward(m, truth->of->other, truth->of->T, NULL, 0, NULL);
    ref_run *run = variant ? run_variant(&changed, variant) : NULL;
    memcpy(m->token_embd, kept, n * sizeof *kept);
    free(kept);
    ref_run_free(changed.source);
    if (!variant) return changed.runs[0];
    ref_run_free(changed.runs[0]);
    return run;
}

static int is_shaky(const walk_truth *truth, size_t variant, qkv_site site, int layer) {
    const ref_run *run = truth->runs[variant];
    const size_t n = ref_site_count(run->model, site, run->T);
    const double scale = scale_of(run->site[site][layer], n);
    int found = 0;
    for (uint64_t seed = 1; seed <= 4 && !found; seed++) {
        ref_run *changed = run_changed(truth, variant, seed);
        for (size_t i = 0; i < n && !found; i++)
            found = !(distance(changed->site[site][layer][i], run->site[site][layer][i]) <=
                      judge_bound / 5 * scale);
        ref_run_free(changed);
    }
    return found;
}

/* ---- what no edit reaches ---- */

/* Does nothing about earlier tokens depend on the tokens that the edit names? */
static int looks_back(const ref_edit *e) {
    return e->op != REF_MEAN_TOKEN && !ref_is_compression(e->op) && !ref_is_late(e->op);
}

/* The first token that a variant can change anything of. */
static int first_token(const walk_case *c, size_t variant) {
    const walk_variant *v = &c->variants[variant - 1];
    int first = c->T;
    if (c->model->ref->family->encoder) return 0;
    for (size_t i = 0; i < v->n; i++) {
        if (v->edits[i].op == REF_FREEZE) continue; /* keeps them as they are */
        if (!looks_back(&v->edits[i]) || !v->edits[i].rows.end) return 0;
        if (v->edits[i].rows.begin < first) first = v->edits[i].rows.begin;
    }
    return first;
}

static int is_reached(const walk_case *c, const place *p) {
    const walk_variant *v = &c->variants[p->variant - 1];
    for (size_t i = 0; i < v->n; i++)
        if (v->edits[i].op != REF_FREEZE &&
            ref_reaches(c->model->ref, &v->edits[i], p->site, p->layer))
            return 1;
    return 0;
}

/* The baseline's bits, wherever no edit reaches: at this site, or of the tokens before. */
static void check_unreached(const walk_case *c, const place *p, const qkv_tensor *t,
                            const qkv_tensor *base) {
    int tokens[WALK_TOKENS];
    const int rows = list_tokens(p, c->T, tokens), is_map = ref_is_map(p->site);
    const size_t count = tensor_count(t), cols = (size_t)t->shape[t->n_dims - 1];
    const size_t heads = (size_t)(t->n_heads ? t->n_heads : 1);
    const int first = is_reached(c, p) ? first_token(c, p->variant) : c->T;
    if (first == c->T && !same_bits(t->data, base->data, count))
        walk_fail("'%s' changes %s of layer %d, which it cannot reach", variant_text(c, p->variant),
                  qkv_site_name(p->site), p->layer);
    if (t->reduction) return;
    for (size_t h = 0; h < heads; h++)
        for (size_t r = 0; r < (size_t)rows && tokens[r] < first; r++) {
            const size_t at = (is_map ? h * (size_t)rows + r : r * heads + h) * cols;
            /* Scores of keys to come are there, and hidden. */
            const size_t seen = p->site == QKV_SITE_SCORES ? (size_t)tokens[r] + 1 : cols;
            if (!same_bits(t->data + at, base->data + at, seen))
                walk_fail("'%s' changes token %d of %s of layer %d, before the first that it names",
                          variant_text(c, p->variant), tokens[r], qkv_site_name(p->site), p->layer);
        }
}

/* ---- results ---- */

static int get(const qkv_result *result, size_t variant, const place *p, qkv_reduction reduction,
               qkv_tensor *t) {
    return reduction ? qkv_result_get_reduced(result, variant, reduction, p->layer, t)
                     : qkv_result_get(result, variant, p->site, p->layer, t);
}

static void check_counts(const walk_truth *truth, const qkv_result *result, size_t variant) {
    const ref_run *run = truth->runs[variant];
    for (size_t i = 0; i < truth->of->variants[variant - 1].n; i++) {
        const uint64_t selected = qkv_result_edit_selected(result, variant, i);
        const uint64_t changed = qkv_result_edit_changed(result, variant, i);
        if (selected != run->selected[i] || changed > selected)
            walk_fail("'%s': edit %zu selects %llu elements and changed %llu, not %llu",
                      variant_text(truth->of, variant), i, (unsigned long long)selected,
                      (unsigned long long)changed, (unsigned long long)run->selected[i]);
    }
}

void walk_judge_result(walk_truth *truth, const qkv_plan *plan, const qkv_result *result) {
    const walk_case *c = truth->of;
    place p = {.plan = plan};
    int32_t layer = 0;
    qkv_tensor t = QKV_TENSOR_INIT, base = QKV_TENSOR_INIT;
    for (size_t i = 0; qkv_result_item(result, i, &p.variant, &p.site, &layer, &t); i++) {
        p.layer = ref_has_layer(p.site) ? layer : 0;
        const double error = error_at(truth->runs[p.variant], &p, &t);
        truth->tensors++;
        if (!(error <= judge_bound) && is_shaky(truth, p.variant, p.site, p.layer))
            truth->shaky++;
        else if (!(error <= judge_bound))
            walk_fail("'%s': %s%s%s of layer %d is off by %g", variant_text(c, p.variant),
                      qkv_site_name(p.site), t.reduction ? ":" : "",
                      qkv_reduction_name(t.reduction), p.layer, error);
        if (!p.variant) continue;
        if (!get(result, 0, &p, t.reduction, &base)) walk_fail("the baseline lacks a capture");
        check_unreached(c, &p, &t, &base);
    }
    for (size_t v = 1; v <= c->n_variants; v++) check_counts(truth, result, v);
}

/* Attention of a long prompt is rounded by what else is in the plan: whole maps or blocks. */
static int is_same(const walk_case *c, const qkv_tensor *a, const qkv_tensor *b) {
    const size_t n = tensor_count(a);
    if (tensor_count(b) != n) return 0;
    if (c->T <= 256) return same_bits(a->data, b->data, n);
    const difference d = compare_floats(a->data, b->data, n);
    return d.max <= judge_bound * fmax(d.scale, 1);
}

void walk_judge_same(const walk_case *c, const qkv_result *one, size_t a, const qkv_result *two,
                     size_t b, const char *how) {
    place p = {0};
    int32_t layer = 0;
    qkv_tensor t = QKV_TENSOR_INIT, other = QKV_TENSOR_INIT;
    for (size_t i = 0; qkv_result_item(one, i, &p.variant, &p.site, &layer, &t); i++) {
        p.layer = layer;
        if (p.variant != a) continue;
        if (!get(two, b, &p, t.reduction, &other) || !is_same(c, &t, &other))
            walk_fail("'%s': %s of layer %d is not %s", variant_text(c, a), qkv_site_name(p.site),
                      p.layer, how);
    }
}

/* ---- rows and logits ---- */

static void check_values(walk_truth *truth, size_t variant, qkv_site site, int layer,
                         const float *values, size_t first, size_t n) {
    const ref_run *run = truth->runs[variant];
    const double *expected = run->site[site][layer];
    const double scale = scale_of(expected, ref_site_count(run->model, site, run->T));
    double worst = 0;
    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, distance((double)values[i], expected[first + i]) / scale);
    truth->tensors++;
    if (worst <= judge_bound) return;
    if (!is_shaky(truth, variant, site, layer))
        walk_fail("'%s': %s of layer %d, from value %zu on, is off by %g",
                  variant_text(truth->of, variant), qkv_site_name(site), layer, first, worst);
    truth->shaky++;
}

void walk_judge_rows(walk_truth *truth, size_t variant, int layer, int head, const float *pattern) {
    const size_t size = (size_t)truth->of->T * (size_t)truth->of->T;
    check_values(truth, variant, QKV_SITE_PATTERN, layer, pattern, (size_t)head * size, size);
}

void walk_judge_logits(walk_truth *truth, size_t variant, int token, const float *logits) {
    const size_t V = (size_t)truth->of->model->ref->V;
    check_values(truth, variant, QKV_SITE_LOGITS, 0, logits, (size_t)token * V, V);
}
