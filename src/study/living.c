/*
 * What a living figure needs beside its maps: the scores of the head that is shown, and which of a
 * panel's edits are factors of them.
 *
 * The page takes scores before the soft-cap, and the site `scores` is behind it. Undoing the cap would
 * lose what it has flattened. But q times 2^-40 makes every score so small that the cap is the
 * identity to the last bits (tanh x = x - x³/3 ...), and a power of two changes no digit of q, nor of
 * any product and sum on the way: the captured scores times 2^40 are those that were capped.
 */
#include "study/living.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"

#define TINY_FACTOR "9.094947017729282379150390625e-13" /* 2^-40 */
static const double TINY_INVERSE = 1099511627776;

/* Scores in F32 beyond this many bytes are too much for a page. */
enum { MOST_SCORES = 8 << 20 };

/* ---- the model ---- */

int qkv_living_new(living **out, const qkv_figure *fig, const qkv_model *model, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(model);
    living *all = *out = qkv_calloc(1, sizeof *all);
    if (!all) return qkv_fail_memory(err);
    all->scores = qkv_calloc(fig->prompts.n, sizeof *all->scores);
    all->softcap = info->attn_softcap;
    all->causal = info->causal;
    if (!all->scores) return qkv_fail_memory(err);
    if (qkv_figure_is_watched(fig)) return QKV_OK;
    all->window = qkv_model_window(model, fig->layer);
    all->has_sink = info->has_sink;
    return info->has_sink ? qkv_model_sink(model, fig->layer, fig->head, &all->sink, err) : QKV_OK;
}

void qkv_living_free(living *all, size_t n_prompts) {
    if (!all) return;
    for (size_t i = 0; all->scores && i < n_prompts; i++) free(all->scores[i]);
    free(all->scores);
    free(all);
}

/* ---- factors ---- */

void qkv_living_release_factors(living_factors *factors) {
    for (size_t i = 0; i < factors->n; i++) {
        free(factors->items[i].target);
        free(factors->items[i].site);
        free(factors->items[i].tokens);
    }
    free(factors->items);
    *factors = (living_factors){0};
}

/* Does the edit change anything below the layer? Then its scores are others. */
static int is_below(const qkv_edit_info *edit, int32_t layer) {
    for (int32_t l = 0; l < layer; l++) {
        if (!edit->layers || edit->layers[l]) return 1;
    }
    return 0;
}

static living_axis axis_of(qkv_site site) {
    if (site == QKV_SITE_Q || site == QKV_SITE_Q_ROT) return LIVING_QUERY;
    if (site == QKV_SITE_K || site == QKV_SITE_K_ROT) return LIVING_KEY;
    return LIVING_NOTHING;
}

/* As it is written: the plan keeps it in F32, and 0.1 would be shown as 0.10000000149. */
static double written_factor(const qkv_edit_info *edit) {
    const char *equals = strchr(edit->text, '='), *colon = equals ? strchr(equals, ':') : NULL;
    double value = 0;
    if (colon && qkv_parse_double(colon + 1, strlen(colon + 1), &value)) return value;
    return edit->number;
}

static int take_factor(living_factor *to, const qkv_edit_info *edit, living_axis axis,
                       size_t n_tokens, qkv_error *err) {
    *to = (living_factor){.target = qkv_strndup(edit->text, strcspn(edit->text, "=")),
                          .site = qkv_strdup(qkv_site_name(edit->site)),
                          .eps = written_factor(edit),
                          .axis = axis};
    if (edit->rows) to->tokens = qkv_calloc(n_tokens, 1);
    if (!to->target || !to->site || (edit->rows && !to->tokens)) return qkv_fail_memory(err);
    if (edit->rows) memcpy(to->tokens, edit->rows, n_tokens);
    return QKV_OK;
}

/* 1: a factor, of the scores or of nothing that is shown; 0: nothing to the page; -1: something else
 * that shows. */
static int judge_edit(const qkv_figure *fig, const qkv_plan *plan, const qkv_result *result,
                      const figure_cell *cell, size_t index, qkv_edit_info *edit,
                      living_axis *axis) {
    const int scales = strcmp(edit->op, "scale") == 0 || strcmp(edit->op, "zero") == 0;
    const int covers = qkv_plan_edit_covers(plan, cell->variant, index, fig->layer, fig->head);
    const int shows = qkv_result_edit_ran(result, cell->variant, index);
    *axis = axis_of(edit->site);
    if (is_below(edit, fig->layer)) return shows ? -1 : 0;
    if (scales && covers && !edit->channels &&
        (*axis != LIVING_NOTHING || edit->site == QKV_SITE_V))
        return 1;
    return shows ? -1 : 0;
}

static int take_factors(const qkv_figure *fig, figure_cell *cell, const qkv_plan *plan,
                        const qkv_result *result, qkv_error *err) {
    living_factors *all = &cell->factors;
    const size_t n_tokens = fig->prompts.items[cell->prompt].n_tokens;
    const size_t n = qkv_result_n_edits(result, cell->variant);
    int status = QKV_OK;
    all->items = qkv_calloc(n, sizeof *all->items);
    if (!all->items) return qkv_fail_memory(err);
    all->complete = 1;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        qkv_edit_info edit = QKV_EDIT_INFO_INIT;
        living_axis axis = LIVING_NOTHING;
        if (!qkv_plan_get_edit(plan, cell->variant, i, &edit)) continue;
        const int found = judge_edit(fig, plan, result, cell, i, &edit, &axis);
        all->complete &= found >= 0;
        if (found <= 0) continue;
        status = take_factor(&all->items[all->n++], &edit, axis, n_tokens, err);
    }
    return status;
}

/* ---- scores ---- */

/* Would a slider move anything? */
static int has_use(const qkv_figure *fig, size_t prompt) {
    for (size_t i = 0; i < fig->rows * fig->cols; i++) {
        const figure_cell *cell = &fig->cells[i];
        if (cell->prompt != prompt || !cell->factors.complete) continue;
        for (size_t k = 0; k < cell->factors.n; k++) {
            if (cell->factors.items[k].axis != LIVING_NOTHING) return 1;
        }
    }
    return 0;
}

/* Of all prompts together: a page has them all. */
static int fits(const qkv_figure *fig) {
    size_t n = 0;
    for (size_t p = 0; p < fig->prompts.n; p++) {
        const size_t tokens = fig->prompts.items[p].n_tokens;
        n += fig->living->causal ? tokens * (tokens + 1) / 2 : tokens * tokens;
    }
    return n <= MOST_SCORES / sizeof(float);
}

int qkv_living_add_scores(qkv_plan *plan, int32_t layer, int32_t head, double softcap,
                          qkv_error *err) {
    char place[48], text[96];
    snprintf(place, sizeof place, head < 0 ? "@%d" : "@%d.h%d", (int)layer, (int)head);
    snprintf(text, sizeof text, "scores%s", place);
    const int status = qkv_plan_add_capture(plan, text, err);
    if (status != QKV_OK || softcap == 0) return status;
    snprintf(text, sizeof text, "q%s=scale:" TINY_FACTOR, place);
    return qkv_plan_add_variant(plan, text, NULL, err);
}

void qkv_living_uncap(float *to, const float *from, size_t n, double softcap) {
    for (size_t i = 0; i < n; i++) {
        to[i] = softcap != 0 ? (float)((double)from[i] * TINY_INVERSE) : from[i];
    }
}

static int copy_scores(qkv_figure *fig, const qkv_result *result, size_t prompt, qkv_error *err) {
    const size_t n_tokens = fig->prompts.items[prompt].n_tokens, n = n_tokens * n_tokens;
    const double softcap = fig->living->softcap;
    qkv_tensor found = QKV_TENSOR_INIT;
    if (!qkv_result_get(result, softcap != 0, QKV_SITE_SCORES, fig->layer, &found)) {
        return qkv_fail(err, QKV_ERR_BACKEND, "the run did not return scores of layer %d",
                        (int)fig->layer);
    }
    float *scores = fig->living->scores[prompt] = qkv_calloc(n, sizeof *scores);
    if (!scores) return qkv_fail_memory(err);
    qkv_living_uncap(scores, found.data, n, softcap);
    return QKV_OK;
}

static int take_scores(qkv_figure *fig, qkv_session *session, size_t prompt, qkv_error *err) {
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    const study_prompt *input = &fig->prompts.items[prompt];
    int status =
        qkv_plan_new(&plan, qkv_session_model(session), input->tokens, input->n_tokens, err);
    if (status == QKV_OK) {
        status = qkv_living_add_scores(plan, fig->layer, fig->head, fig->living->softcap, err);
    }
    if (status == QKV_OK) status = qkv_session_run(session, &result, plan, err);
    if (status == QKV_OK) status = copy_scores(fig, result, prompt, err);
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

int qkv_living_take(qkv_figure *fig, qkv_session *session, size_t prompt, const qkv_plan *plan,
                    const qkv_result *result, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < fig->rows * fig->cols && status == QKV_OK; i++) {
        figure_cell *cell = &fig->cells[i];
        if (cell->prompt == prompt) status = take_factors(fig, cell, plan, result, err);
    }
    if (status != QKV_OK || !has_use(fig, prompt) || !fits(fig)) return status;
    return take_scores(fig, session, prompt, err);
}
