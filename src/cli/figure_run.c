/* Computes what a figure shows: which head, and one matrix per cell. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "cli/figure.h"
#include "cli/run_table.h"
#include "qkv/measure.h"

/* ---- which head ---- */

/* Patterns of all layers of a long prompt do not fit in memory: they are captured in groups of
 * layers that stay below this many bytes. */
#define PATTERN_BUDGET ((int64_t)512 << 20)

static void look_at_layer(figure *fig, const qkv_result *result, int32_t layer) {
    qkv_tensor pattern;
    if (!qkv_result_get(result, 0, QKV_SITE_PATTERN, layer, &pattern)) return;
    const int64_t n_tokens = pattern.shape[1];
    for (int32_t i = 0; i < pattern.n_heads; i++) {
        const float *head = pattern.data + (int64_t)i * n_tokens * n_tokens;
        const double sink = qkv_measure_first_column(head, n_tokens);
        if (sink <= fig->sink) continue;
        fig->sink = sink;
        fig->layer = layer;
        fig->head = pattern.heads ? pattern.heads[i] : i;
    }
}

static int look_at_layers(figure *fig, int32_t first, int32_t last, qkv_error *err) {
    char capture[96];
    int n = snprintf(capture, sizeof capture, "pattern@%d-%d", (int)first, (int)last);
    if (first == last) n = snprintf(capture, sizeof capture, "pattern@%d", (int)first);
    if (fig->args->head != CLI_AUTO) {
        snprintf(capture + n, sizeof capture - (size_t)n, ".h%d", (int)fig->args->head);
    }
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    const cli_prompt *prompt = &fig->prompts[0];
    int status = qkv_plan_new(&plan, fig->model, prompt->tokens, prompt->n_tokens, err);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, capture, err);
    if (status == QKV_OK) status = qkv_session_run(fig->session, &result, plan, err);
    for (int32_t layer = first; layer <= last && status == QKV_OK; layer++) {
        look_at_layer(fig, result, layer);
    }
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

int figure_choose_head(figure *fig, qkv_error *err) {
    const figure_args *args = fig->args;
    fig->layer = (int32_t)args->layer;
    fig->head = (int32_t)args->head;
    if (args->layer != CLI_AUTO && args->head != CLI_AUTO) return QKV_OK;
    const int32_t first = args->layer == CLI_AUTO ? 0 : fig->layer;
    const int32_t last = args->layer == CLI_AUTO ? fig->info->n_layer - 1 : fig->layer;
    const int64_t n_tokens = (int64_t)fig->prompts[0].n_tokens;
    const int64_t n_heads = args->head == CLI_AUTO ? fig->info->n_head : 1;
    const int64_t bytes = n_heads * n_tokens * n_tokens * (int64_t)sizeof(float);
    const int32_t group = bytes * (last - first + 1) <= PATTERN_BUDGET ? last - first + 1
                          : bytes > PATTERN_BUDGET                     ? 1
                                                   : (int32_t)(PATTERN_BUDGET / bytes);
    int status = QKV_OK;
    for (int32_t layer = first; layer <= last && status == QKV_OK; layer += group) {
        const int32_t end = layer + group - 1 < last ? layer + group - 1 : last;
        status = look_at_layers(fig, layer, end, err);
    }
    if (status == QKV_OK) {
        qkv_print(stderr,
                  "qkv: layer %d, head %d: the strongest first-token sink "
                  "(mean weight %.3f on the first token)\n",
                  (int)fig->layer, (int)fig->head, fig->sink);
    }
    return status;
}

/* ---- cells ---- */

/* Cells with the same edits on the same prompt share one variant. */
static int add_variant(const figure *fig, qkv_plan *plan, size_t index, qkv_error *err) {
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

static int make_plan(const figure *fig, size_t prompt, qkv_plan **plan, qkv_error *err) {
    char capture[96];
    snprintf(capture, sizeof capture, "%s@%d.h%d", qkv_site_name(fig->site), (int)fig->layer,
             (int)fig->head);
    const cli_prompt *input = &fig->prompts[prompt];
    int status = qkv_plan_new(plan, fig->model, input->tokens, input->n_tokens, err);
    if (status == QKV_OK) status = qkv_plan_add_capture(*plan, capture, err);
    if (status == QKV_OK) status = cli_sources_add(&fig->sources, *plan, err);
    for (size_t i = 0; i < fig->rows * fig->cols && status == QKV_OK; i++) {
        if (fig->cells[i].prompt == prompt) status = add_variant(fig, *plan, i, err);
    }
    return status;
}

size_t figure_n_cols(const figure *fig, size_t prompt) {
    return fig->prompts[prompt].n_tokens - (size_t)fig->args->skip_keys +
           (size_t)fig->args->sink_column;
}

/* What is left of a row for the model's learned sink. */
static float sink_share(const float *row, size_t n) {
    double rest = 1;
    for (size_t i = 0; i < n; i++) rest -= (double)row[i];
    return (float)rest;
}

/* The maps that a report is about, as they are. */
static int keep_maps(const figure *fig, figure_cell *cell, const qkv_tensor *shown,
                     const qkv_tensor *plain, qkv_error *err) {
    const size_t n_tokens = fig->prompts[cell->prompt].n_tokens;
    const size_t n = n_tokens * n_tokens;
    float **base = &fig->plain[cell->prompt];
    cell->pattern = qkv_calloc(n, sizeof **base);
    if (!*base) *base = qkv_calloc(n, sizeof **base);
    if (!cell->pattern || !*base) return qkv_fail_memory(err);
    memcpy(cell->pattern, shown->data, n * sizeof **base);
    memcpy(*base, plain->data, n * sizeof **base);
    return QKV_OK;
}

/* Copies what is drawn: the sink's share first where that is asked for, without the first keys, and
 * as a difference. */
static int fill_cell(const figure *fig, figure_cell *cell, const qkv_result *result,
                     qkv_error *err) {
    qkv_tensor shown, plain;
    if (!qkv_result_get(result, cell->variant, fig->site, fig->layer, &shown) ||
        !qkv_result_get(result, 0, fig->site, fig->layer, &plain)) {
        return qkv_fail(err, QKV_ERR_BACKEND, "the run did not return %s of layer %d",
                        qkv_site_name(fig->site), (int)fig->layer);
    }
    const size_t n_tokens = fig->prompts[cell->prompt].n_tokens;
    const size_t skip = (size_t)fig->args->skip_keys;
    cell->values = qkv_calloc(n_tokens * figure_n_cols(fig, cell->prompt), sizeof *cell->values);
    if (!cell->values) return qkv_fail_memory(err);
    float *value = cell->values;
    for (size_t i = 0; i < n_tokens; i++) {
        const float *row = shown.data + i * n_tokens, *base = plain.data + i * n_tokens;
        if (fig->args->sink_column)
            *value++ =
                sink_share(row, n_tokens) - (fig->args->diff ? sink_share(base, n_tokens) : 0.0f);
        for (size_t k = skip; k < n_tokens; k++)
            *value++ = row[k] - (fig->args->diff ? base[k] : 0.0f);
    }
    return fig->plain ? keep_maps(fig, cell, &shown, &plain, err) : QKV_OK;
}

/* Has an earlier variant been warned about for the same edit and reason? */
static int is_known(const qkv_result *result, size_t variant, size_t edit) {
    for (size_t v = 1; v < variant; v++) {
        for (size_t e = 0; e < qkv_result_n_edits(result, v); e++) {
            if (cli_edit_is_idle(result, v, e) &&
                qkv_result_edit_ran(result, v, e) == qkv_result_edit_ran(result, variant, edit) &&
                strcmp(qkv_result_edit_text(result, v, e),
                       qkv_result_edit_text(result, variant, edit)) == 0) {
                return 1;
            }
        }
    }
    return 0;
}

/* An edit of a row stands in all its panels: one line for each edit, naming the first of them. */
static void warn_unchanged(const figure *fig, const qkv_result *result) {
    size_t known = 0;
    for (size_t i = 0; i < fig->rows * fig->cols; i++) {
        const size_t v = fig->cells[i].variant;
        if (v <= known) continue;
        known = v;
        char where[64];
        snprintf(where, sizeof where, "row %zu, column %zu", i / fig->cols + 1, i % fig->cols + 1);
        for (size_t e = 0; e < qkv_result_n_edits(result, v); e++) {
            if (cli_edit_is_idle(result, v, e) && !is_known(result, v, e)) {
                cli_warn_edit(result, v, e, where);
            }
        }
    }
}

static int compute_prompt(figure *fig, size_t prompt, qkv_error *err) {
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    int status = make_plan(fig, prompt, &plan, err);
    if (status == QKV_OK) status = qkv_session_run(fig->session, &result, plan, err);
    if (status == QKV_OK && fig->warn) warn_unchanged(fig, result);
    for (size_t i = 0; i < fig->rows * fig->cols && status == QKV_OK; i++) {
        if (fig->cells[i].prompt == prompt) status = fill_cell(fig, &fig->cells[i], result, err);
    }
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

int figure_compute(figure *fig, qkv_error *err) {
    int status = QKV_OK;
    if (fig->args->reports.n) {
        fig->plain = qkv_calloc(fig->n_prompts, sizeof *fig->plain);
        if (!fig->plain) return qkv_fail_memory(err);
    }
    for (size_t prompt = 0; prompt < fig->n_prompts && status == QKV_OK; prompt++) {
        status = compute_prompt(fig, prompt, err);
    }
    return status;
}
