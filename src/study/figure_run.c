/*
 * Computes what a figure shows: one plan and run per prompt, one matrix per cell. All that concerns a
 * prompt is computed before the next one: a session keeps the trunk of one. The first is the prompt
 * that the head was chosen with.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "qkv/measure.h"
#include "study/figure.h"

/* ---- plan ---- */

/* Cells with the same edits on the same prompt share one variant. */
static int add_variant(const qkv_figure *fig, qkv_plan *plan, size_t index, qkv_error *err) {
    figure_cell *cell = &fig->cells[index];
    if (cell->edits[0] == '\0') {
        cell->variant = 0;
        return QKV_OK;
    }
    for (size_t i = 0; i < index; i++) {
        const figure_cell *other = &fig->cells[i];
        if (other->prompt == cell->prompt && strcmp(other->edits, cell->edits) == 0) {
            cell->variant = other->variant;
            return QKV_OK;
        }
    }
    return qkv_plan_add_variant(plan, cell->edits, &cell->variant, err);
}

static int add_sources(const qkv_figure *fig, qkv_plan *plan, qkv_error *err) {
    int status = qkv_plan_set_edit_data(plan, fig->data, err);
    for (size_t i = 0; i < fig->sources.n && status == QKV_OK; i++) {
        const qkv_own_prompt *source = &fig->sources.items[i];
        status = qkv_plan_add_source(plan, source->name, source->tokens, source->n_tokens, err);
    }
    return status;
}

static int make_plan(const qkv_figure *fig, const qkv_model *model, size_t prompt, qkv_plan **plan,
                     qkv_error *err) {
    char capture[96];
    snprintf(capture, sizeof capture, "%s@%d.h%d", qkv_site_name(fig->site), (int)fig->layer,
             (int)fig->head);
    const qkv_own_prompt *input = &fig->prompts.items[prompt];
    int status = qkv_plan_new(plan, model, input->tokens, input->n_tokens, err);
    if (status == QKV_OK) status = qkv_plan_add_capture(*plan, capture, err);
    if (status == QKV_OK) status = add_sources(fig, *plan, err);
    for (size_t i = 0; i < fig->rows * fig->cols && status == QKV_OK; i++) {
        if (fig->cells[i].prompt == prompt) status = add_variant(fig, *plan, i, err);
    }
    return status;
}

/* ---- cells ---- */

size_t qkv_figure_n_cols(const qkv_figure *fig, size_t prompt) {
    return fig->prompts.items[prompt].n_tokens - (size_t)fig->options.skip_keys +
           (fig->options.sink_column != 0);
}

/* What is left of a row for the model's learned sink. */
static float sink_share(const float *row, size_t n) {
    double rest = 1;
    for (size_t i = 0; i < n; i++) rest -= (double)row[i];
    return (float)rest;
}

/* The maps that a report or a page is about, as they are. */
static int keep_maps(const qkv_figure *fig, figure_cell *cell, const qkv_tensor *shown,
                     const qkv_tensor *plain, qkv_error *err) {
    const size_t n_tokens = fig->prompts.items[cell->prompt].n_tokens;
    const size_t n = n_tokens * n_tokens;
    float **base = &fig->plain[cell->prompt];
    cell->map_rows = cell->map_cols = n_tokens;
    cell->map_step = 1;
    cell->pattern = qkv_calloc(n, sizeof **base);
    if (!*base) *base = qkv_calloc(n, sizeof **base);
    if (!cell->pattern || !*base) return qkv_fail_memory(err);
    memcpy(cell->pattern, shown->data, n * sizeof **base);
    memcpy(*base, plain->data, n * sizeof **base);
    return QKV_OK;
}

/* Copies what is drawn: the sink's share first where that is asked for, without the first keys, and
 * as a difference. A score that an edit has masked has no value. */
static int fill_cell(const qkv_figure *fig, figure_cell *cell, const qkv_result *result,
                     qkv_error *err) {
    qkv_tensor shown = QKV_TENSOR_INIT, plain = QKV_TENSOR_INIT;
    if (!qkv_result_get(result, cell->variant, fig->site, fig->layer, &shown) ||
        !qkv_result_get(result, 0, fig->site, fig->layer, &plain)) {
        return qkv_fail(err, QKV_ERR_BACKEND, "the run did not return %s of layer %d",
                        qkv_site_name(fig->site), (int)fig->layer);
    }
    const size_t n_tokens = fig->prompts.items[cell->prompt].n_tokens;
    const size_t skip = (size_t)fig->options.skip_keys;
    cell->n_rows = n_tokens;
    cell->n_cols = qkv_figure_n_cols(fig, cell->prompt);
    cell->values = qkv_calloc(cell->n_rows * cell->n_cols, sizeof *cell->values);
    if (!cell->values) return qkv_fail_memory(err);
    float *value = cell->values;
    for (size_t i = 0; i < n_tokens; i++) {
        const float *row = shown.data + i * n_tokens, *base = plain.data + i * n_tokens;
        if (fig->options.sink_column)
            *value++ =
                sink_share(row, n_tokens) - (fig->options.diff ? sink_share(base, n_tokens) : 0.0f);
        for (size_t k = skip; k < n_tokens; k++)
            *value++ = row[k] == -INFINITY ? NAN : row[k] - (fig->options.diff ? base[k] : 0.0f);
    }
    return fig->plain ? keep_maps(fig, cell, &shown, &plain, err) : QKV_OK;
}

/* Is there a warning about this edit, with this reason? */
static int is_known(const qkv_figure *fig, const char *edit, const char *reason) {
    const size_t length = strlen(edit);
    for (size_t i = 0; i < fig->warnings.n; i++) {
        const char *text = fig->warnings.items[i];
        if (strncmp(text, edit, length) == 0 && text[length] == ' ' && strstr(text, reason)) {
            return 1;
        }
    }
    return 0;
}

static int warn_edit(qkv_figure *fig, const qkv_result *result, size_t cell, size_t edit,
                     qkv_error *err) {
    const size_t v = fig->cells[cell].variant;
    if (!qkv_result_edit_is_idle(result, v, edit)) return QKV_OK;
    const char *text = qkv_result_edit_text(result, v, edit);
    const char *reason = qkv_result_edit_ran(result, v, edit)
                             ? "changed no value"
                             : "was not computed: nothing that is captured depends on it";
    if (is_known(fig, text, reason)) return QKV_OK;
    if (fig->kind != QKV_FIGURE_GRID) {
        return qkv_figure_warn(fig, qkv_figure_printf("%s %s", text, reason), err);
    }
    return qkv_figure_warn(fig,
                           qkv_figure_printf("%s (row %zu, column %zu) %s", text,
                                             cell / fig->cols + 1, cell % fig->cols + 1, reason),
                           err);
}

int qkv_figure_warn_unchanged(qkv_figure *fig, const qkv_result *result, size_t prompt,
                              qkv_error *err) {
    size_t known = 0;
    int status = QKV_OK;
    for (size_t i = 0; i < fig->rows * fig->cols; i++) {
        const size_t v = fig->cells[i].variant;
        if (fig->cells[i].prompt != prompt || v <= known) continue;
        known = v;
        for (size_t e = 0; e < qkv_result_n_edits(result, v) && status == QKV_OK; e++) {
            status = warn_edit(fig, result, i, e, err);
        }
    }
    return status;
}

/* ---- output ---- */

/* The variants of the first plan without its capture, numbered alike: in the order of the cells. */
static int make_output_plan(const qkv_figure *fig, const qkv_model *model, size_t prompt,
                            qkv_plan **plan, qkv_error *err) {
    const qkv_own_prompt *input = &fig->prompts.items[prompt];
    size_t n_variants = 1;
    int status = qkv_plan_new(plan, model, input->tokens, input->n_tokens, err);
    if (status == QKV_OK) status = add_sources(fig, *plan, err);
    for (size_t i = 0; i < fig->rows * fig->cols && status == QKV_OK; i++) {
        const figure_cell *cell = &fig->cells[i];
        if (cell->prompt != prompt || cell->variant != n_variants) continue;
        status = qkv_plan_add_variant(*plan, cell->edits, NULL, err);
        n_variants++;
    }
    return status;
}

static void take_outputs(const qkv_figure *fig, size_t prompt, const qkv_table *table) {
    qkv_measurement row = QKV_MEASUREMENT_INIT;
    for (size_t i = 0; i < fig->rows * fig->cols; i++) {
        figure_cell *cell = &fig->cells[i];
        if (cell->prompt != prompt) continue;
        const int found = table && qkv_table_get(table, cell->variant, &row);
        cell->output_kl = found ? row.value : NAN;
    }
}

/* What the edits of a prompt's cells do to the distribution of the next token: right after the
 * patterns of the prompt, while the session has its trunk. */
static int measure_outputs(const qkv_figure *fig, qkv_session *session, size_t prompt,
                           qkv_error *err) {
    qkv_measure *measure = NULL;
    qkv_plan *plan = NULL;
    qkv_table *table = NULL;
    int status = QKV_OK;
    if (fig->has_logits) {
        status = qkv_measure_new(&measure, "output_kl", NULL, err);
        if (status == QKV_OK)
            status = make_output_plan(fig, qkv_session_model(session), prompt, &plan, err);
        if (status == QKV_OK) status = qkv_measure_run(measure, &table, session, plan, err);
    }
    take_outputs(fig, prompt, table);
    qkv_table_free(table);
    qkv_plan_free(plan);
    qkv_measure_free(measure);
    return status;
}

/* ---- prompts ---- */

/* The published figures have edits that change nothing on purpose; others are the caller's. */
static int compute_prompt(qkv_figure *fig, qkv_session *session, size_t prompt, qkv_error *err) {
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    int status = make_plan(fig, qkv_session_model(session), prompt, &plan, err);
    if (status == QKV_OK) status = qkv_session_run(session, &result, plan, err);
    if (status == QKV_OK && (fig->kind == QKV_FIGURE_GRID || fig->kind == QKV_FIGURE_PATTERN)) {
        status = qkv_figure_warn_unchanged(fig, result, prompt, err);
    }
    for (size_t i = 0; i < fig->rows * fig->cols && status == QKV_OK; i++) {
        if (fig->cells[i].prompt == prompt) status = fill_cell(fig, &fig->cells[i], result, err);
    }
    if (status == QKV_OK && fig->scores) {
        status = qkv_figure_scores_take(fig, session, prompt, plan, result, err);
    }
    qkv_result_free(result);
    qkv_plan_free(plan);
    if (status == QKV_OK && fig->options.report) {
        status = measure_outputs(fig, session, prompt, err);
    }
    return status;
}

/* A prompt is one run and, where one head is shown, one more for a page and for a report. */
static int compute_prompts(qkv_figure *fig, qkv_session *session, qkv_error *err) {
    const int more = (fig->scores != NULL) + (fig->options.report != 0);
    const int n_runs = qkv_figure_is_watched(fig) ? 1 : 1 + more;
    int status = qkv_session_begin_work(session, "runs", (double)fig->prompts.n * n_runs, err);
    if (status != QKV_OK) return status;
    for (size_t prompt = 0; prompt < fig->prompts.n && status == QKV_OK; prompt++) {
        status = qkv_figure_is_watched(fig) ? qkv_figure_watch(fig, session, prompt, err)
                                            : compute_prompt(fig, session, prompt, err);
    }
    return qkv_session_end_work(session, status);
}

int qkv_figure_compute(qkv_figure *fig, qkv_session *session, qkv_error *err) {
    int status = QKV_OK;
    if (fig->options.report || fig->options.page) {
        fig->plain = qkv_calloc(fig->prompts.n, sizeof *fig->plain);
        if (!fig->plain) return qkv_fail_memory(err);
        status = qkv_figure_scores_new(&fig->scores, fig, qkv_session_model(session), err);
    }
    return status == QKV_OK ? compute_prompts(fig, session, err) : status;
}
