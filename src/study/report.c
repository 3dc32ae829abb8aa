/* Gathers what a report says about the panels of a figure. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "qkv/measure.h"
#include "run/run.h"
#include "study/report.h"

#define COLUMN_METRIC(metric, heading) #metric,
const char *const qkv_report_metrics[REPORT_COLUMNS] = {REPORT_COLUMN_LIST(COLUMN_METRIC)};
#undef COLUMN_METRIC
#define COLUMN_HEADING(metric, heading) heading,
const char *const qkv_report_headings[REPORT_COLUMNS] = {REPORT_COLUMN_LIST(COLUMN_HEADING)};
#undef COLUMN_HEADING

const char *const qkv_report_verdicts[3] = {"does not hold", "holds", "does not apply"};

const char qkv_report_thresholds[] =
    "uniform: uniformity of at least 0.95; else sink: first column of at least 0.5; else diagonal: "
    "diagonal of at least 0.5; else mixed";

static const char *classify(const double *values) {
    if (values[REPORT_uniformity] >= REPORT_UNIFORM) return "uniform";
    if (values[REPORT_first_column] >= REPORT_SINK) return "sink";
    if (values[REPORT_diagonal] >= REPORT_DIAGONAL) return "diagonal";
    return "mixed";
}

double qkv_report_difference(const report *r, size_t a, size_t b) {
    const figure_cell *x = r->panels[a].cell, *y = r->panels[b].cell;
    if (x->prompt != y->prompt) return INFINITY;
    const size_t n_tokens = r->fig->prompts.items[x->prompt].n_tokens;
    double largest = 0;
    for (size_t i = 0; i < n_tokens * n_tokens; i++) {
        largest = fmax(largest, fabs((double)x->pattern[i] - (double)y->pattern[i]));
    }
    return largest;
}

static int same_bits(const report *r, size_t a, size_t b) {
    const figure_cell *x = r->panels[a].cell, *y = r->panels[b].cell;
    const size_t n_tokens = r->fig->prompts.items[x->prompt].n_tokens;
    return x->prompt == y->prompt &&
           memcmp(x->pattern, y->pattern, n_tokens * n_tokens * sizeof(float)) == 0;
}

int qkv_report_next_pair(const report *r, size_t *at, report_pair *pair) {
    for (; *at < r->n_panels * r->n_panels; ++*at) {
        const size_t a = *at / r->n_panels, b = *at % r->n_panels;
        const size_t first = r->panels[a].same_as, second = r->panels[b].same_as;
        if (a >= b || first != a || (second != a && second != b)) continue;
        *pair = (report_pair){a, b, second == a, qkv_report_difference(r, a, b)};
        if (pair->difference > REPORT_NEAR) continue;
        ++*at;
        return 1;
    }
    return 0;
}

/* ---- measuring ---- */

static int new_measure(qkv_measure **out, qkv_error *err) {
    char names[512] = "";
    for (int i = 0; i < REPORT_COLUMNS; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? "," : "", qkv_report_metrics[i]);
    }
    return qkv_measure_new(out, names, NULL, err);
}

report_keys qkv_report_visible(const report *r, const report_panel *panel, size_t query) {
    return r->visible[panel->cell->prompt][query];
}

static int find_visible(report *r, const qkv_model *model, qkv_error *err) {
    const qkv_figure *fig = r->fig;
    for (size_t p = 0; p < fig->prompts.n; p++) {
        const size_t n = fig->prompts.items[p].n_tokens;
        r->visible[p] = qkv_calloc(n, sizeof *r->visible[p]);
        if (!r->visible[p]) return qkv_fail_memory(err);
        for (size_t i = 0; i < n; i++) {
            int64_t first, end;
            qkv_visible_keys(model, fig->layer, (int64_t)n, (int64_t)i, &first, &end);
            r->visible[p][i] = (report_keys){(size_t)first, (size_t)end};
        }
    }
    return QKV_OK;
}

static int measure_map(const report *r, const qkv_measure *measure, size_t prompt, const float *map,
                       report_panel *panel, qkv_error *err) {
    const qkv_own_prompt *input = &r->fig->prompts.items[prompt];
    const int64_t n = (int64_t)input->n_tokens;
    const size_t first = r->visible[prompt][n - 1].first;
    const qkv_pattern pattern = {.size = sizeof(qkv_pattern),
                                 .weights = map,
                                 .baseline = r->fig->plain[prompt],
                                 .tokens = input->tokens,
                                 .n_tokens = n,
                                 .window = first ? n - (int64_t)first : 0,
                                 .bidirectional = r->visible[prompt][0].end > 1};
    const int status = qkv_measure_pattern(measure, &pattern, panel->values, err);
    panel->kind = status == QKV_OK ? classify(panel->values) : "";
    return status;
}

static int measure_panels(report *r, qkv_error *err) {
    const qkv_figure *fig = r->fig;
    qkv_measure *measure = NULL;
    int status = new_measure(&measure, err);
    for (size_t p = 0; p < fig->prompts.n && status == QKV_OK; p++) {
        status = measure_map(r, measure, p, fig->plain[p], &r->plain[p], err);
    }
    for (size_t i = 0; i < r->n_panels && status == QKV_OK; i++) {
        report_panel *panel = &r->panels[i];
        panel->cell = &fig->cells[i];
        panel->row = i / fig->cols;
        panel->col = i % fig->cols;
        panel->output_kl = fig->cells[i].output_kl;
        status = measure_map(r, measure, panel->cell->prompt, panel->cell->pattern, panel, err);
        panel->same_as = i;
        for (size_t k = 0; k < i && panel->same_as == i; k++) {
            if (same_bits(r, k, i)) panel->same_as = k;
        }
    }
    qkv_measure_free(measure);
    return status;
}

static int gather(report *r, const qkv_model *model, qkv_error *err) {
    int status = find_visible(r, model, err);
    if (status == QKV_OK) status = measure_panels(r, err);
    return status == QKV_OK ? qkv_report_judge(r, err) : status;
}

/* ---- the whole ---- */

int qkv_report_new(report **out, const qkv_figure *fig, const qkv_model *model, qkv_error *err) {
    report *r = *out = qkv_calloc(1, sizeof *r);
    if (!r) return qkv_fail_memory(err);
    r->fig = fig;
    r->n_panels = fig->rows * fig->cols;
    r->panels = qkv_calloc(r->n_panels, sizeof *r->panels);
    r->plain = qkv_calloc(fig->prompts.n, sizeof *r->plain);
    r->visible = qkv_calloc(fig->prompts.n, sizeof *r->visible);
    const int status =
        r->panels && r->plain && r->visible ? gather(r, model, err) : qkv_fail_memory(err);
    if (status == QKV_OK) return QKV_OK;
    qkv_report_free(r);
    *out = NULL;
    return status;
}

void qkv_report_free(report *r) {
    if (!r) return;
    for (size_t i = 0; i < r->n_facts; i++) free(r->facts[i].text);
    for (size_t p = 0; r->visible && p < r->fig->prompts.n; p++) free(r->visible[p]);
    free(r->facts);
    free(r->visible);
    free(r->plain);
    free(r->panels);
    free(r);
}

int qkv_report_format(const report *r, const char *format, qkv_text *text, qkv_error *err) {
    int status = QKV_OK;
    if (strcmp(format, "md") == 0) {
        qkv_report_markdown(r, text);
    } else {
        status = qkv_report_json(r, text, err);
    }
    return status == QKV_OK && text->failed ? qkv_fail_memory(err) : status;
}

void qkv_report_put_number(qkv_text *text, double value) {
    if (isnan(value)) {
        qkv_text_puts(text, "\xe2\x80\x93");
    } else if (value == 0) {
        qkv_text_puts(text, "0");
    } else if (fabs(value) < 1e-3) {
        qkv_text_printf(text, "%.1e", value);
    } else {
        qkv_text_printf(text, "%.3f", value);
    }
}
