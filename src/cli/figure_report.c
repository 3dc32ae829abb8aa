/* Gathers what a report says about the panels of a figure, and writes it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/report.h"
#include "qkv/observe.h"

#define COLUMN_METRIC(metric, heading) #metric,
const char *const report_metrics[REPORT_COLUMNS] = {REPORT_COLUMN_LIST(COLUMN_METRIC)};
#undef COLUMN_METRIC
#define COLUMN_HEADING(metric, heading) heading,
const char *const report_headings[REPORT_COLUMNS] = {REPORT_COLUMN_LIST(COLUMN_HEADING)};
#undef COLUMN_HEADING

const char *const report_verdicts[3] = {"does not hold", "holds", "does not apply"};

const char report_thresholds[] =
    "uniform: uniformity of at least 0.95; else sink: first column of at least 0.5; else diagonal: "
    "diagonal of at least 0.5; else mixed";

static const char *classify(const double *values) {
    if (values[REPORT_uniformity] >= REPORT_UNIFORM) return "uniform";
    if (values[REPORT_first_column] >= REPORT_SINK) return "sink";
    if (values[REPORT_diagonal] >= REPORT_DIAGONAL) return "diagonal";
    return "mixed";
}

double report_difference(const report *r, size_t a, size_t b) {
    const figure_cell *x = r->panels[a].cell, *y = r->panels[b].cell;
    if (x->prompt != y->prompt) return INFINITY;
    const size_t n_tokens = r->fig->prompts[x->prompt].n_tokens;
    double largest = 0;
    for (size_t i = 0; i < n_tokens * n_tokens; i++) {
        largest = fmax(largest, fabs((double)x->pattern[i] - (double)y->pattern[i]));
    }
    return largest;
}

static int same_bits(const report *r, size_t a, size_t b) {
    const figure_cell *x = r->panels[a].cell, *y = r->panels[b].cell;
    const size_t n_tokens = r->fig->prompts[x->prompt].n_tokens;
    return x->prompt == y->prompt &&
           memcmp(x->pattern, y->pattern, n_tokens * n_tokens * sizeof(float)) == 0;
}

int report_next_pair(const report *r, size_t *at, report_pair *pair) {
    for (; *at < r->n_panels * r->n_panels; ++*at) {
        const size_t a = *at / r->n_panels, b = *at % r->n_panels;
        const size_t first = r->panels[a].same_as, second = r->panels[b].same_as;
        if (a >= b || first != a || (second != a && second != b)) continue;
        *pair = (report_pair){a, b, second == a, report_difference(r, a, b)};
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
        snprintf(names + used, sizeof names - used, "%s%s", i ? "," : "", report_metrics[i]);
    }
    return qkv_measure_new(out, names, NULL, err);
}

void report_visible(const report *r, const report_panel *panel, size_t query, size_t *first,
                    size_t *end) {
    int64_t from, to;
    const int64_t n = (int64_t)r->fig->prompts[panel->cell->prompt].n_tokens;
    qkv_visible_keys(r->fig->model, r->fig->layer, n, (int64_t)query, &from, &to);
    *first = (size_t)from;
    *end = (size_t)to;
}

static int measure_map(const figure *fig, const qkv_measure *measure, size_t prompt,
                       const float *map, report_panel *panel, qkv_error *err) {
    int64_t first, end, unused;
    const int64_t n = (int64_t)fig->prompts[prompt].n_tokens;
    qkv_visible_keys(fig->model, fig->layer, n, 0, &unused, &end);
    qkv_visible_keys(fig->model, fig->layer, n, n - 1, &first, &unused);
    const qkv_pattern pattern = {.weights = map,
                                 .baseline = fig->plain[prompt],
                                 .tokens = fig->prompts[prompt].tokens,
                                 .n_tokens = n,
                                 .window = first ? n - first : 0,
                                 .bidirectional = end > 1};
    const int status = qkv_measure_pattern(measure, &pattern, panel->values, err);
    panel->kind = status == QKV_OK ? classify(panel->values) : "";
    return status;
}

static int measure_panels(report *r, qkv_error *err) {
    const figure *fig = r->fig;
    qkv_measure *measure = NULL;
    int status = new_measure(&measure, err);
    for (size_t p = 0; p < fig->n_prompts && status == QKV_OK; p++) {
        status = measure_map(fig, measure, p, fig->plain[p], &r->plain[p], err);
    }
    for (size_t i = 0; i < r->n_panels && status == QKV_OK; i++) {
        report_panel *panel = &r->panels[i];
        panel->cell = &fig->cells[i];
        panel->row = i / fig->cols;
        panel->col = i % fig->cols;
        status = measure_map(fig, measure, panel->cell->prompt, panel->cell->pattern, panel, err);
        panel->same_as = i;
        for (size_t k = 0; k < i && panel->same_as == i; k++) {
            if (same_bits(r, k, i)) panel->same_as = k;
        }
    }
    qkv_measure_free(measure);
    return status;
}

/* What the edits of every panel do to the distribution of the next token. */
static int take_outputs(report *r, size_t prompt, const qkv_table *table) {
    for (size_t i = 0; i < r->n_panels; i++) {
        if (r->panels[i].cell->prompt != prompt) continue;
        r->panels[i].output_kl = qkv_table_get(table, r->panels[i].cell->variant).value;
    }
    return QKV_OK;
}

static int measure_outputs(report *r, size_t prompt, qkv_measure *measure, qkv_error *err) {
    const figure *fig = r->fig;
    const cli_prompt *input = &fig->prompts[prompt];
    qkv_plan *plan = NULL;
    qkv_table *table = NULL;
    size_t n_variants = 1;
    int status = qkv_plan_new(&plan, fig->model, input->tokens, input->n_tokens, err);
    if (status == QKV_OK) status = cli_sources_add(&fig->sources, plan, err);
    /* Variants were numbered in the order of the cells. */
    for (size_t i = 0; i < r->n_panels && status == QKV_OK; i++) {
        const figure_cell *cell = r->panels[i].cell;
        if (cell->prompt != prompt || cell->variant != n_variants) continue;
        status = qkv_plan_add_variant(plan, cell->edits, NULL, err);
        n_variants++;
    }
    if (status == QKV_OK) status = qkv_measure_run(measure, &table, fig->session, plan, err);
    if (status == QKV_OK) status = take_outputs(r, prompt, table);
    qkv_table_free(table);
    qkv_plan_free(plan);
    return status;
}

static int gather(report *r, qkv_error *err) {
    qkv_measure *measure = NULL;
    int status = measure_panels(r, err);
    for (size_t i = 0; i < r->n_panels; i++) r->panels[i].output_kl = NAN;
    if (status == QKV_OK && !r->fig->info->has_logits) return report_judge(r, err);
    if (status == QKV_OK) status = qkv_measure_new(&measure, "output_kl", NULL, err);
    for (size_t p = 0; p < r->fig->n_prompts && status == QKV_OK; p++) {
        status = measure_outputs(r, p, measure, err);
    }
    qkv_measure_free(measure);
    return status == QKV_OK ? report_judge(r, err) : status;
}

/* ---- writing ---- */

static int format_report(const report *r, const char *suffix, qkv_text *text, qkv_error *err) {
    int status = QKV_OK;
    if (strcmp(suffix, "md") == 0) {
        report_markdown(r, text);
    } else if (strcmp(suffix, "html") == 0) {
        report_html(r, text);
    } else {
        status = report_json(r, text, err);
    }
    return status == QKV_OK && text->failed ? qkv_fail_memory(err) : status;
}

static int write_report(const report *r, const char *path, qkv_error *err) {
    qkv_text text = {0};
    qkv_output out;
    int status = format_report(r, qkv_path_suffix(path), &text, err);
    if (status == QKV_OK) status = qkv_output_open(&out, path, err);
    if (status == QKV_OK) {
        fwrite(text.data, 1, text.length, out.stream);
        status = qkv_output_finish(&out, err);
    }
    qkv_text_release(&text);
    return status;
}

int figure_write_reports(const figure *fig, const char *small_print, const char *recipe,
                         qkv_error *err) {
    const cli_list *files = &fig->args->reports;
    if (files->n == 0) return QKV_OK;
    report r = {.fig = fig, .small_print = small_print, .recipe = recipe};
    r.n_panels = fig->rows * fig->cols;
    r.panels = qkv_calloc(r.n_panels, sizeof *r.panels);
    r.plain = qkv_calloc(fig->n_prompts, sizeof *r.plain);
    int status = r.panels && r.plain ? gather(&r, err) : qkv_fail_memory(err);
    for (size_t i = 0; i < files->n && status == QKV_OK; i++) {
        status = write_report(&r, files->items[i].value, err);
    }
    for (size_t i = 0; i < r.n_facts; i++) free(r.facts[i].text);
    free(r.facts);
    free(r.plain);
    free(r.panels);
    return status;
}

void report_put_number(qkv_text *text, double value) {
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
