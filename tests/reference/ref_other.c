/* See ref_other.h. A mean is taken anew for each element. */
#include "reference/ref_other.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"

struct ref_others {
    int32_t *tokens; /* of the own prompt */
    int T;
    ref_run *set[REF_SET_SIZE];
    ref_run *begins[REF_SET_SIZE]; /* as many tokens as the own prompt has, of those with as many */
};

static const int lengths[REF_SET_SIZE] = {0, REF_SHIFT, 0, 1, -4}; /* beside the own prompt's */

static int length_of(int index, int T) {
    return T + lengths[index] > 1 ? T + lengths[index] : 1;
}

int32_t *ref_set_prompt(int index, const int32_t *tokens, int T, int V, int *length) {
    const int n = length_of(index, T);
    int32_t *prompt = calloc((size_t)n, sizeof *prompt);
    if (!prompt) abort();
    for (int t = 0; t < n; t++)
        prompt[t] = index == REF_OWN ? tokens[t]
                    : t == 0         ? tokens[0]
                                     : 3 + (17 * t + 29 * index + 5 * t * t) % (V - 3);
    *length = n;
    return prompt;
}

int ref_takes_other(ref_op op) {
    return op == REF_MEAN_SET || op == REF_MEAN_POSITION || op == REF_RESAMPLE ||
           op == REF_PATCH_FAR;
}

/* ---- drawing ---- */

/* A longer prompt will do where tokens do not see later ones. */
static int is_candidate(const ref_model *m, int index) {
    if (index == REF_OWN || lengths[index] < 0) return 0;
    return !m->family->encoder || lengths[index] == 0;
}

static int draw(const ref_model *m, const ref_edit *e, const int32_t *tokens, int T) {
    int candidates[REF_SET_SIZE], n = 0;
    uint64_t key = qkv_random_mix((uint64_t)e->seed, (uint64_t)T);
    for (int t = 0; t < T; t++) key = qkv_random_mix(key, (uint64_t)tokens[t]);
    for (int i = 0; i < REF_SET_SIZE; i++)
        if (is_candidate(m, i)) candidates[n++] = i;
    return candidates[key % (uint64_t)n];
}

/* ---- all of them ---- */

/* The first n tokens; 0: all. */
static ref_run *run_prompt(const ref_model *m, const int32_t *tokens, int T, int index, int n) {
    int length;
    int32_t *prompt = ref_set_prompt(index, tokens, T, m->V, &length);
    ref_run *run = ref_forward(m, prompt, n ? n : length, NULL, 0, NULL);
    free(prompt);
    return run;
}

ref_others *ref_others_new(void) {
    ref_others *others = calloc(1, sizeof *others);
    if (!others) abort();
    return others;
}

static void clear(ref_others *others) {
    free(others->tokens);
    for (int i = 0; i < REF_SET_SIZE; i++) {
        ref_run_free(others->set[i]);
        ref_run_free(others->begins[i]);
    }
    *others = (ref_others){0};
}

void ref_others_free(ref_others *others) {
    if (others) clear(others);
    free(others);
}

void ref_others_need(const ref_model *m, const int32_t *tokens, int T, const ref_edit *edits,
                     size_t n_edits) {
    ref_others *others = m->others;
    const size_t size = (size_t)T * sizeof *tokens;
    int needed = 0;
    for (size_t i = 0; i < n_edits; i++) needed |= ref_takes_other(edits[i].op);
    if (!needed || (others->T == T && memcmp(others->tokens, tokens, size) == 0)) return;
    clear(others);
    others->T = T;
    others->tokens = malloc(size);
    if (!others->tokens) abort();
    memcpy(others->tokens, tokens, size);
    for (int i = 0; i < REF_SET_SIZE; i++) {
        others->set[i] = run_prompt(m, tokens, T, i, 0);
        if (is_candidate(m, i)) others->begins[i] = run_prompt(m, tokens, T, i, T);
    }
}

/* ---- values ---- */

/* m: as the layer has it. */
static double value_in(const ref_model *m, const ref_run *run, qkv_site site, int layer, int n_head,
                       int head, int row, int col) {
    const ref_view v = ref_view_of(m, site, run->T, run->site[site][layer]);
    return *ref_at(&v, head * v.n_head / n_head, row, col);
}

static double mean_of_set(const ref_pass *p, const ref_edit *e, int layer, int n_head, int head,
                          int row, int col) {
    double sum = 0, n = 0;
    for (int i = 0; i < REF_SET_SIZE; i++) {
        const ref_run *run = p->m->others->set[i];
        for (int t = 0; t < run->T; t++) {
            if (e->op == REF_MEAN_POSITION && t != row) continue;
            sum += value_in(p->m, run, e->site, layer, n_head, head, t, col);
            n++;
        }
    }
    return sum / n;
}

double ref_other_value(const ref_pass *p, const ref_edit *e, int layer, int n_head, int head,
                       int row, int col) {
    const ref_others *others = p->m->others;
    if (e->op == REF_RESAMPLE)
        return value_in(p->m, others->begins[draw(p->m, e, others->tokens, p->T)], e->site, layer,
                        n_head, head, row, col);
    if (e->op == REF_PATCH_FAR)
        return value_in(p->m, others->set[REF_FAR], e->site, layer, n_head, head, row + REF_SHIFT,
                        col);
    return mean_of_set(p, e, layer, n_head, head, row, col);
}
