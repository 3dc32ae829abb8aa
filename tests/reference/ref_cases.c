/* See ref_cases.h. */
#include "reference/ref_cases.h"

#include <stdlib.h>

int ref_has_heads(qkv_site site) {
    return site != QKV_SITE_RESID_PRE && site != QKV_SITE_ATTN_OUT && site != QKV_SITE_MLP_OUT &&
           site != QKV_SITE_RESID_POST && site != QKV_SITE_LOGITS;
}

int ref_is_shared(qkv_site site) {
    return site == QKV_SITE_K || site == QKV_SITE_V || site == QKV_SITE_K_ROT;
}

int ref_is_map(qkv_site site) {
    return site == QKV_SITE_SCORES || site == QKV_SITE_PATTERN;
}

void ref_choose_arguments(ref_edit *edit) {
    static const double first[REF_OP_COUNT] = {[REF_SCALE] = 0.3,
                                               [REF_SET] = 0.25,
                                               [REF_ADD] = 0.7,
                                               [REF_NOISE] = 0.5,
                                               [REF_CLAMP] = -0.4};
    edit->a = first[edit->op];
    edit->b = 0.5;
    edit->seed = 7;
}

/* Which layers, heads and tokens: all at one layer; one head and a range of tokens; a last token
 * for several heads, or for a group, at every layer. */
static void choose_selector(const ref_model *m, int T, ref_edit *e, int which) {
    const int last_layer = m->n_layer - 1;
    if (which == 0) e->layers = (uint64_t)1 << 1;
    if (which == 1) {
        e->layers = (uint64_t)1 << 0 | (uint64_t)1 << last_layer;
        e->head_kind = ref_has_heads(e->site) ? 'h' : 0;
        e->heads = (uint64_t)1 << (m->H - 2);
        e->rows = (ref_range){2, 6};
        if (ref_is_map(e->site)) e->cols = (ref_range){0, 3};
    }
    if (which == 2) {
        e->head_kind = !ref_has_heads(e->site) ? 0 : ref_is_shared(e->site) ? 'g' : 'h';
        e->heads = ref_is_shared(e->site) ? (uint64_t)1 << (m->G - 1) : 5;
        e->rows = (ref_range){T - 1, T};
    }
}

static void add_case(ref_cases *list, const ref_edit *edit) {
    if (list->n == REF_MAX_CASES) abort();
    list->edits[list->n] = *edit;
    ref_edit_text(edit, list->text[list->n], REF_TEXT_SIZE);
    list->variants[list->n] = list->text[list->n];
    list->variants[++list->n] = NULL;
}

ref_cases *ref_make_cases(const ref_model *model, int n_tokens) {
    ref_cases *list = calloc(1, sizeof *list);
    if (!list) abort();
    for (int s = 0; s < QKV_SITE_COUNT; s++)
        for (int op = 0; op < REF_OP_COUNT; op++)
            for (int which = 0; which < 3; which++) {
                ref_edit e = {.site = (qkv_site)s, .op = (ref_op)op};
                if (op == REF_MEAN_HEAD && !ref_has_heads(e.site)) continue;
                ref_choose_arguments(&e);
                choose_selector(model, n_tokens, &e, which);
                add_case(list, &e);
            }
    return list;
}
