/* See figure_scores.h. */
#include "study/figure_scores.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "model/model.h"
#include "run/run.h"
#include "study/figure.h"
#include "study/head_scores.h"

/* Scores in F32 beyond this many bytes are too much for a page. */
enum { MOST_SCORES = 8 << 20 };

/* ---- the model ---- */

int qkv_figure_scores_new(figure_scores **out, const qkv_figure *fig, const qkv_model *model,
                          qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(model);
    figure_scores *all = *out = qkv_calloc(1, sizeof *all);
    if (!all) return qkv_fail_memory(err);
    all->maps = qkv_calloc(fig->prompts.n, sizeof *all->maps);
    all->softcap = info->attn_softcap;
    all->causal = info->causal;
    if (!all->maps) return qkv_fail_memory(err);
    if (qkv_figure_is_watched(fig)) return QKV_OK;
    all->window = qkv_model_window(model, fig->layer);
    all->has_sink = info->has_sink;
    all->slope = qkv_head_slope(model, fig->layer, fig->head);
    return info->has_sink ? qkv_model_sink(model, fig->layer, fig->head, &all->sink, err) : QKV_OK;
}

void qkv_figure_scores_free(figure_scores *all, size_t n_prompts) {
    if (!all) return;
    for (size_t i = 0; all->maps && i < n_prompts; i++) free(all->maps[i]);
    free(all->maps);
    free(all);
}

/* ---- factors ---- */

void qkv_edit_factors_release(edit_factors *factors) {
    for (size_t i = 0; i < factors->n; i++) {
        free(factors->items[i].target);
        free(factors->items[i].site);
        free(factors->items[i].tokens);
    }
    free(factors->items);
    *factors = (edit_factors){0};
}

/* As it is written: the plan keeps it in F32, and 0.1 would be shown as 0.10000000149. */
static double written_factor(const qkv_edit_info *edit) {
    const char *equals = strchr(edit->text, '='), *colon = equals ? strchr(equals, ':') : NULL;
    double value = 0;
    if (colon && qkv_parse_double(colon + 1, strlen(colon + 1), &value)) return value;
    return edit->number;
}

static int take_factor(edit_factor *to, const qkv_edit_info *edit, factor_axis axis,
                       size_t n_tokens, qkv_error *err) {
    *to = (edit_factor){.target = qkv_strndup(edit->text, strcspn(edit->text, "=")),
                        .site = qkv_strdup(qkv_site_name(edit->site)),
                        .eps = written_factor(edit),
                        .axis = axis};
    if (edit->rows) to->tokens = qkv_calloc(n_tokens, 1);
    if (!to->target || !to->site || (edit->rows && !to->tokens)) return qkv_fail_memory(err);
    if (edit->rows) memcpy(to->tokens, edit->rows, n_tokens);
    return QKV_OK;
}

static factor_axis axis_of(qkv_score_role role) {
    if (role == QKV_SCORE_QUERY) return FACTOR_QUERY;
    return role == QKV_SCORE_KEY ? FACTOR_KEY : FACTOR_NOTHING;
}

static int take_factors(const qkv_figure *fig, figure_cell *cell, const qkv_plan *plan,
                        const qkv_result *result, qkv_error *err) {
    edit_factors *all = &cell->factors;
    const size_t n_tokens = fig->prompts.items[cell->prompt].n_tokens;
    const size_t n = qkv_result_n_edits(result, cell->variant);
    int status = QKV_OK;
    all->items = qkv_calloc(n, sizeof *all->items);
    if (!all->items) return qkv_fail_memory(err);
    all->complete = 1;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        qkv_edit_info edit = QKV_EDIT_INFO_INIT;
        if (!qkv_plan_get_edit(plan, cell->variant, i, &edit)) continue;
        const qkv_score_role role =
            qkv_edit_score_role(plan, result, cell->variant, i, fig->layer, fig->head);
        all->complete &= role != QKV_SCORE_OTHER;
        if (role == QKV_SCORE_OTHER || role == QKV_SCORE_NOTHING) continue;
        status = take_factor(&all->items[all->n++], &edit, axis_of(role), n_tokens, err);
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
            if (cell->factors.items[k].axis != FACTOR_NOTHING) return 1;
        }
    }
    return 0;
}

/* Of all prompts together: a page has them all. */
static int fits(const qkv_figure *fig) {
    size_t n = 0;
    for (size_t p = 0; p < fig->prompts.n; p++) {
        const size_t tokens = fig->prompts.items[p].n_tokens;
        n += fig->scores->causal ? tokens * (tokens + 1) / 2 : tokens * tokens;
    }
    return n <= MOST_SCORES / sizeof(float);
}

static int take_scores(qkv_figure *fig, qkv_session *session, size_t prompt, qkv_error *err) {
    const qkv_own_prompt *input = &fig->prompts.items[prompt];
    float *scores = qkv_calloc(input->n_tokens * input->n_tokens, sizeof *scores);
    if (!scores) return qkv_fail_memory(err);
    fig->scores->maps[prompt] = scores;
    return qkv_head_scores(session, input->tokens, input->n_tokens, fig->layer, fig->head, scores,
                           err);
}

int qkv_figure_scores_take(qkv_figure *fig, qkv_session *session, size_t prompt,
                           const qkv_plan *plan, const qkv_result *result, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < fig->rows * fig->cols && status == QKV_OK; i++) {
        figure_cell *cell = &fig->cells[i];
        if (cell->prompt == prompt) status = take_factors(fig, cell, plan, result, err);
    }
    if (status != QKV_OK || !has_use(fig, prompt) || !fits(fig)) return status;
    return take_scores(fig, session, prompt, err);
}
