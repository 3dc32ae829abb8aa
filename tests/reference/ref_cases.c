/* See ref_cases.h. */
#include "reference/ref_cases.h"

#include <stdlib.h>

#include "reference/ref_pass.h"

int ref_has_heads(qkv_site site) {
    return site == QKV_SITE_Q || site == QKV_SITE_Q_ROT || site == QKV_SITE_Z ||
           site == QKV_SITE_GATE || site == QKV_SITE_Q_IN || ref_is_shared(site) ||
           ref_is_map(site);
}

int ref_is_input(qkv_site site) {
    return site == QKV_SITE_Q_IN || site == QKV_SITE_K_IN || site == QKV_SITE_V_IN;
}

qkv_site ref_seen_like(qkv_site site) {
    return ref_is_input(site) ? QKV_SITE_Q_IN : QKV_SITE_Q;
}

int ref_layer_has_site(const ref_model *m, qkv_site site, int layer) {
    return ref_has_site(m, site) && ref_has_site_in(m, site, layer);
}

/* Channels, and vectors, are of layers with one shape. */
static int layers_differ(const ref_model *m, const ref_edit *e) {
    const ref_shape_of_layer *first = NULL;
    for (int il = 0; il < m->n_layer && ref_has_layer(e->site); il++) {
        const ref_shape_of_layer *s = &m->layers[il].shape;
        if (!ref_has(e->layers, il) || !ref_layer_has_site(m, e->site, il)) continue;
        if (first && (s->d != first->d || s->G != first->G || s->F != first->F)) return 1;
        if (!first) first = s;
    }
    return 0;
}

int ref_refuses(const ref_model *m, const ref_edit *e) {
    if ((e->channels.end || ref_takes_vector(e->op)) && layers_differ(m, e)) return 1;
    return m->family->head_norm == REF_ALL_HEADS && e->site == QKV_SITE_K_IN &&
           e->head_kind == 'h' && m->H != m->G;
}

int ref_has_layer(qkv_site site) {
    return site != QKV_SITE_LOGITS && site != QKV_SITE_FINAL_NORM;
}

int ref_is_shared(qkv_site site) {
    return site == QKV_SITE_K || site == QKV_SITE_V || site == QKV_SITE_K_ROT ||
           site == QKV_SITE_K_IN || site == QKV_SITE_V_IN;
}

int ref_is_map(qkv_site site) {
    return site == QKV_SITE_SCORES || site == QKV_SITE_PATTERN;
}

/* The residual stream runs through all layers. */
int ref_has_site_in(const ref_model *m, qkv_site site, int layer) {
    const ref_layer *l = &m->layers[layer];
    if (site == QKV_SITE_RESID_PRE || site == QKV_SITE_RESID_POST || !ref_has_layer(site)) return 1;
    if (site == QKV_SITE_MLP_ACT || site == QKV_SITE_MLP_OUT) return l->has_feed_forward;
    if (site == QKV_SITE_ATTN_OUT) return l->has_attention || l->has_mixer;
    if (site == QKV_SITE_GATE) return l->q_gate.w != NULL;
    return l->has_attention && (!ref_is_shared(site) || l->kv_layer == layer);
}

int ref_count_layers(const ref_model *m, qkv_site site) {
    int n = 0;
    for (int il = 0; il < m->n_layer; il++) n += ref_has_site_in(m, site, il);
    return n;
}

int ref_nth_layer(const ref_model *m, qkv_site site, int n) {
    int found = -1;
    for (int il = 0; il < m->n_layer; il++)
        if (ref_has_site_in(m, site, il)) {
            found = il;
            if (n-- == 0) break;
        }
    return found;
}

int ref_has_site(const ref_model *m, qkv_site site) {
    if (ref_has_layer(site) && ref_count_layers(m, site) == 0) return 0;
    if (site == QKV_SITE_MLP_ACT) return m->n_expert == 0;
    return ref_has_layer(site) || m->output.w ||
           (site == QKV_SITE_FINAL_NORM && m->output_norm.weight);
}

#define ONLY(site) (1u << QKV_SITE_##site)
#define FED (ONLY(MLP_ACT) | ONLY(MLP_OUT) | ONLY(RESID_POST))
#define AFTER (ONLY(ATTN_OUT) | FED)
#define MIXED (ONLY(Z) | AFTER)
#define WEIGHED (ONLY(PATTERN) | MIXED)
#define SCORED (ONLY(SCORES) | WEIGHED)

/* Which sites of its own layer an edit of a site can change. */
static const unsigned flows[QKV_SITE_COUNT] = {
    [QKV_SITE_RESID_PRE] = ((1u << QKV_SITE_LOGITS) - 1) | ONLY(MLP_ACT) | ONLY(Q_IN) | ONLY(K_IN) |
                           ONLY(V_IN) | ONLY(GATE),
    [QKV_SITE_GATE] = ONLY(GATE) | AFTER,
    [QKV_SITE_Q_IN] = ONLY(Q_IN) | ONLY(Q) | ONLY(Q_ROT) | SCORED,
    [QKV_SITE_K_IN] = ONLY(K_IN) | ONLY(K) | ONLY(K_ROT) | SCORED,
    [QKV_SITE_V_IN] = ONLY(V_IN) | ONLY(V) | MIXED,
    [QKV_SITE_Q] = ONLY(Q) | ONLY(Q_ROT) | SCORED,
    [QKV_SITE_K] = ONLY(K) | ONLY(K_ROT) | SCORED,
    [QKV_SITE_V] = ONLY(V) | MIXED,
    [QKV_SITE_Q_ROT] = ONLY(Q_ROT) | SCORED,
    [QKV_SITE_K_ROT] = ONLY(K_ROT) | SCORED,
    [QKV_SITE_SCORES] = SCORED,
    [QKV_SITE_PATTERN] = WEIGHED,
    [QKV_SITE_Z] = MIXED,
    [QKV_SITE_ATTN_OUT] = AFTER,
    [QKV_SITE_MLP_ACT] = FED,
    [QKV_SITE_MLP_OUT] = ONLY(MLP_OUT) | ONLY(RESID_POST),
    [QKV_SITE_RESID_POST] = ONLY(RESID_POST),
    [QKV_SITE_LOGITS] = ONLY(LOGITS),
    [QKV_SITE_FINAL_NORM] = ONLY(FINAL_NORM) | ONLY(LOGITS),
};

int ref_reaches(const ref_model *m, const ref_edit *e, qkv_site site, int layer) {
    if (!ref_has_layer(e->site)) return flows[e->site] >> site & 1;
    if (!ref_has_layer(site)) return 1;
    for (int il = 0; il < layer; il++)
        if (ref_has(e->layers, il) && ref_has_site_in(m, e->site, il)) return 1;
    if (!ref_has(e->layers, layer) || !ref_has_site_in(m, e->site, layer)) return 0;
    /* side by side with attention, the feed-forward does not see what attention does */
    const int fed = e->site == QKV_SITE_MLP_ACT || e->site == QKV_SITE_MLP_OUT;
    if (m->parallel && (site == QKV_SITE_MLP_ACT || site == QKV_SITE_MLP_OUT) && !fed)
        return e->site == QKV_SITE_RESID_PRE;
    return flows[e->site] >> site & 1;
}

void ref_choose_arguments(ref_edit *edit) {
    static const double first[REF_OP_COUNT] = {
        [REF_SCALE] = 0.3,     [REF_SET] = 0.25,        [REF_ADD] = 0.7,
        [REF_NOISE] = 0.5,     [REF_CLAMP] = -0.4,      [REF_MASK_RULE] = 1,
        [REF_MASK_CACHE] = 2,  [REF_LATE_CHANNEL] = 2,  [REF_LATE_TOKEN] = 1,
        [REF_MASK_BAND] = 3,   [REF_H2O] = 4,           [REF_H2O_EVAL] = 4,
        [REF_SNAPKV] = 4,      [REF_QUANT_CHANNEL] = 2, [REF_QUANT_TOKEN] = 2,
        [REF_QUANT_EVERY] = 3, [REF_ADD_VECTOR] = -1.5};
    static const double second[REF_OP_COUNT] = {
        [REF_MASK_CACHE] = 2,    [REF_LATE_CHANNEL] = 4, [REF_LATE_TOKEN] = 4, [REF_CLAMP] = 0.5,
        [REF_MASK_RULE] = 2,     [REF_H2O] = 2,          [REF_H2O_EVAL] = 2,   [REF_SNAPKV] = 2,
        [REF_QUANT_CHANNEL] = 3, [REF_QUANT_TOKEN] = 4,  [REF_QUANT_EVERY] = 4};
    edit->a = first[edit->op];
    edit->b = second[edit->op];
    edit->seed = 7;
}

void ref_choose_vector(const ref_model *m, int T, ref_edit *e, int which) {
    if (!ref_takes_vector(e->op)) return;
    int first = 0;
    while (first + 1 < m->n_layer &&
           !(ref_has(e->layers, first) && ref_has_site_in(m, e->site, first)))
        first++;
    const ref_model own = ref_in_layer(m, first);
    const ref_view v = ref_view_of(&own, e->site, T, NULL);
    e->vector = (ref_shape){.width = v.n_col};
    if (ref_has_heads(e->site) && which > 0)
        e->vector.heads = e->head_kind == 'h' ? m->H : v.n_head;
    if (which == 2 || (which == 1 && !ref_has_heads(e->site))) e->vector.tokens = T;
}

enum { EVERY_LAYER = 2, SOME_CHANNELS = 3, SELECTORS = 4 };

/* Which layers, heads and tokens: all at one layer; one head and a range of tokens; a last token
 * for several heads, or for a group, at every layer; some channels of one head, or key/value head,
 * and of some tokens. */
static void choose_selector(const ref_model *m, int T, ref_edit *e, int which) {
    const uint64_t first = (uint64_t)1 << ref_nth_layer(m, e->site, 0);
    const uint64_t second = (uint64_t)1 << ref_nth_layer(m, e->site, 1);
    const uint64_t last = (uint64_t)1 << ref_nth_layer(m, e->site, m->n_layer);
    if (which == 0) e->layers = second;
    if (which == 1) {
        e->layers = first | last;
        e->head_kind = ref_has_heads(e->site) ? 'h' : 0;
        e->heads = (uint64_t)1 << (m->H - 2);
        e->rows = (ref_range){2, 6};
        if (ref_is_map(e->site)) e->cols = (ref_range){0, 3};
    }
    if (which == EVERY_LAYER) {
        e->head_kind = !ref_has_heads(e->site) ? 0 : ref_is_shared(e->site) ? 'g' : 'h';
        e->heads = ref_is_shared(e->site) ? (uint64_t)1 << (m->G - 1) : 5;
        e->rows = (ref_range){T - 1, T};
    }
    if (which == SOME_CHANNELS) {
        e->layers = second;
        e->head_kind = ref_has_heads(e->site) ? ref_is_shared(e->site) ? 'g' : 'h' : 0;
        e->heads = 1;
        e->rows = (ref_range){1, T - 2};
        e->channels = (ref_range){1, 4};
    }
    if (ref_is_compression(e->op)) e->cols = (ref_range){0, 0}; /* of all keys */
}

static void add_case(ref_cases *list, const ref_edit *edit) {
    if (list->n == REF_MAX_CASES) abort();
    list->edits[list->n] = *edit;
    ref_edit_text(edit, list->text[list->n], REF_TEXT_SIZE);
    list->variants[list->n] = list->text[list->n];
    list->variants[++list->n] = NULL;
}

/* A LayerNorm turns a row of equal channels into rounding times 1/sqrt(epsilon). Without a bias
 * nothing is added to that, and the next layer's norm does it again; and keys that are nothing else make
 * scores of it. */
static int leaves_rounding(const ref_model *m, const ref_edit *e) {
    const ref_norm norm = m->layers[m->n_layer - 1].attn_before; /* the first may have none */
    const int averages = e->op == REF_MEAN_DIM;
    if (m->family->norm != REF_LAYER || !norm.weight || !(averages || e->op == REF_SET)) return 0;
    return (averages && ref_is_input(e->site)) ||
           (!norm.bias && (e->site == QKV_SITE_RESID_PRE || e->site == QKV_SITE_RESID_POST));
}

int ref_can_move(const ref_model *m, const ref_edit *e) {
    for (int il = 0; il < m->n_layer && !m->family->norm_after_turning; il++)
        if (ref_has(e->layers, il) && m->layers[il].has_attention &&
            (m->layers[il].rope || m->last_slope > 0))
            return !m->family->encoder;
    return 0;
}

int ref_has_other_heads(const ref_model *m, qkv_site site) {
    return ref_has_heads(site) && (ref_is_shared(site) ? m->G : m->H) > 1;
}

/* Adds the case with one of the selectors, unless there is no such edit. */
static void make_case(ref_cases *list, const ref_model *m, int T, ref_edit e, int which) {
    if (!ref_has_site(m, e.site) || (e.op == REF_MEAN_HEAD && !ref_has_heads(e.site))) return;
    if (e.op == REF_MEAN_OTHERS && !ref_has_other_heads(m, e.site)) return;
    if (!ref_allows(e.site, e.op) || e.op == REF_MASK) return; /* rows must have a key left */
    if (m->family->encoder && (e.op == REF_H2O || e.op == REF_H2O_EVAL || e.op == REF_SNAPKV))
        return;
    if (m->family->encoder && ref_is_late(e.op)) return;
    if (which == SOME_CHANNELS && (ref_is_map(e.site) || e.op == REF_REMOVE_VECTOR))
        which = EVERY_LAYER;
    ref_choose_arguments(&e);
    choose_selector(m, T, &e, leaves_rounding(m, &e) ? EVERY_LAYER : which);
    ref_choose_vector(m, T, &e, which);
    if (e.op == REF_MASK_CACHE && !ref_can_move(m, &e)) return;
    if (ref_refuses(m, &e)) return;
    add_case(list, &e);
}

/* turn < 0: all selectors */
static ref_cases *make_cases(const ref_model *m, int T, int turn) {
    ref_cases *list = calloc(1, sizeof *list);
    if (!list) abort();
    for (int s = 0; s < QKV_SITE_COUNT; s++)
        for (int op = 0; op < REF_OP_COUNT; op++)
            for (int which = 0; which < SELECTORS; which++) {
                const ref_edit e = {.site = (qkv_site)s, .op = (ref_op)op};
                if (turn < 0 || which == (s + op + turn) % SELECTORS)
                    make_case(list, m, T, e, which);
            }
    return list;
}

ref_cases *ref_make_cases(const ref_model *model, int n_tokens) {
    return make_cases(model, n_tokens, -1);
}

ref_cases *ref_make_cases_once(const ref_model *model, int n_tokens, int turn) {
    return make_cases(model, n_tokens, turn);
}
