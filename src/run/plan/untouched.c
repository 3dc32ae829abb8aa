/*
 * Tokens that need not be computed again: those before the first one that a variant edits. In a causal
 * model nothing about them changes, in no layer; attention of the others sees their keys and values, which
 * the trunk has. The rest comes out the same, bit for bit: no row of a product or of a softmax depends on
 * how many others there are.
 */
#include <stdlib.h>

#include "run/plan/planner.h"

/* Of one token alone, from itself and from nothing else of its prompt. */
static int acts_by_token(const qkv_edit *edit, const qkv_hparams *hp) {
    const qkv_selector *where = &edit->where;
    return (edit->flags & QKV_EDIT_BY_TOKEN) && where->rows && where->layers &&
           qkv_site_get_axes(where->site) != QKV_AXES_MAP && !qkv_selector_splits_any(where, hp);
}

static int64_t first_row(const qkv_selector *where, int64_t n_tokens) {
    int64_t t = 0;
    while (t < n_tokens && !where->rows[t]) t++;
    return t;
}

/* Two tokens are left at least: how ggml rounds the RoPE of one short row depends on where in memory it
 * lies. */
int64_t qkv_untouched_tokens(const qkv_plan *plan, size_t variant) {
    const qkv_variant *v = &plan->variants[variant];
    int64_t n = plan->n_tokens > 2 ? plan->n_tokens - 2 : 0;
    for (size_t i = 0; i < v->n_edits; i++) {
        const int64_t first = acts_by_token(&v->edits[i], &plan->model->hp)
                                  ? first_row(&v->edits[i].where, plan->n_tokens)
                                  : 0;
        if (first < n) n = first;
    }
    return n;
}

/* What a pass keeps must be of tokens that it computes: some logits, and nothing else. */
static int64_t first_kept(const qkv_planner *p) {
    const int32_t n_layer = p->plan->model->hp.n_layer;
    const uint8_t *rows = qkv_plan_wanted(p->plan, n_layer, QKV_SITE_LOGITS)->rows;
    int64_t t = 0;
    for (size_t i = 0; i < qkv_n_places(p->plan); i++) {
        if (p->keep[i] &&
            (i != qkv_place(QKV_SITE_LOGITS, n_layer) || p->keep[i] != QKV_KEEP_WHOLE))
            return 0;
    }
    while (rows && t < p->plan->n_tokens && !rows[t]) t++;
    return t;
}

typedef struct ordered {
    int64_t untouched;
    size_t variant;
} ordered;

static int by_untouched(const void *a, const void *b) {
    const ordered *x = a, *y = b;
    if (x->untouched != y->untouched) return x->untouched < y->untouched ? -1 : 1;
    return (x->variant > y->variant) - (x->variant < y->variant);
}

/* Out of memory, passes leave nothing out. */
int qkv_untouched_sort(const qkv_planner *p, int32_t from, size_t *variants, size_t n) {
    const qkv_plan *plan = p->plan;
    const int64_t kept = first_kept(p);
    int64_t most = 0;
    if (!plan->model->hp.causal || qkv_pass_block_rows(p) < plan->n_tokens) return 0;
    for (int32_t il = from; il < plan->model->hp.n_layer; il++) {
        if (!p->has_heads[il]) return 0;
    }
    if (from == plan->model->hp.n_layer) return 0;
    ordered *list = malloc(n * sizeof *list);
    for (size_t i = 0; list && i < n; i++) {
        list[i] = (ordered){qkv_untouched_tokens(plan, variants[i]), variants[i]};
        if (list[i].untouched > most) most = list[i].untouched;
    }
    const int cut = list && most > 0 && most <= kept;
    if (cut) qsort(list, n, sizeof *list, by_untouched);
    for (size_t i = 0; cut && i < n; i++) variants[i] = list[i].variant;
    free(list);
    return cut;
}
