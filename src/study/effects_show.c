/* Effects as tables and charts: what a recipe asks for, means over the prompts, a chart for each metric and operation. */
#include "study/effects.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "study/plot.h"
#include "study/recipe.h"
#include "sweep/sweep.h"

enum { DEFAULT_TOP = 10, MOST_CHARTS = 32, NAME_SIZE = 80 };

/* ---- means over the prompts ---- */

typedef struct mean_row {
    size_t metric;
    qkv_sweep_row cell; /* of the first prompt */
    double mean, low, high;
    size_t n; /* prompts with a value */
} mean_row;

typedef struct mean_rows {
    mean_row *items;
    size_t n;
} mean_rows;

static void add_value(mean_row *to, double value) {
    if (isnan(value)) return;
    to->low = to->n ? fmin(to->low, value) : value;
    to->high = to->n ? fmax(to->high, value) : value;
    to->mean += value;
    to->n++;
}

/* Prompts are the outermost order of cells, and all have the same. */
static int take_metric(mean_rows *to, const effects *e, size_t metric, size_t n_cells,
                       qkv_error *err) {
    qkv_sweep_rows *rows = NULL;
    qkv_sweep_row row = QKV_SWEEP_ROW_INIT;
    mean_row *items = to->items + to->n;
    const int status =
        qkv_sweep_reader_rows(e->file, qkv_sweep_metric(e->sweep, metric), &rows, err);
    for (size_t i = 0; qkv_sweep_rows_get(rows, i, &row); i++) {
        mean_row *item = &items[i % n_cells];
        if (i < n_cells) *item = (mean_row){.metric = metric, .cell = row};
        add_value(item, row.value);
    }
    qkv_sweep_rows_free(rows);
    for (size_t i = 0; i < n_cells; i++) {
        mean_row *item = &items[i];
        item->mean = item->n ? item->mean / (double)item->n : (double)NAN;
        if (!item->n) item->low = item->high = (double)NAN;
    }
    to->n += n_cells;
    return status;
}

static int take_means(mean_rows *to, const effects *e, qkv_error *err) {
    const size_t n_cells = (size_t)e->sweep->per_prompt, n_metrics = e->sweep->n_metrics;
    int status = QKV_OK;
    to->items = qkv_calloc(n_cells * n_metrics, sizeof *to->items);
    if (!to->items) return qkv_fail_memory(err);
    for (size_t m = 0; m < n_metrics && status == QKV_OK; m++)
        status = take_metric(to, e, m, n_cells, err);
    return status;
}

/* ---- tables of means ---- */

/* -1: all together. */
static study_value place(int32_t number) {
    return STUDY_NUMBER(number < 0 ? (double)NAN : (double)number);
}

static int add_mean(const effects *e, qkv_study *study, const mean_row *row, qkv_error *err) {
    const qkv_sweep_row *cell = &row->cell;
    return qkv_study_add_row(
        study,
        (study_value[]){STUDY_TEXT(qkv_sweep_metric(e->sweep, row->metric)),
                        STUDY_TEXT(qkv_sweep_reader_target(e->file, (size_t)cell->target)),
                        STUDY_TEXT(qkv_sweep_reader_op(e->file, (size_t)cell->op)),
                        STUDY_NUMBER(cell->epsilon), place(cell->layer), place(cell->head),
                        STUDY_NUMBER(row->mean), STUDY_NUMBER(row->low), STUDY_NUMBER(row->high),
                        STUDY_NUMBER(row->n)},
        err);
}

static int add_table(qkv_study *study, const char *name, const char *title, qkv_error *err) {
    static const char *const columns[] = {"metric", "target", "op",  "epsilon", "layer",
                                          "head",   "mean",   "low", "high",    "prompts"};
    return qkv_study_add_table(study, name, title, columns, sizeof columns / sizeof *columns, err);
}

static int add_means(const effects *e, qkv_study *study, const mean_rows *all, qkv_error *err) {
    int status = add_table(study, "means", "Means over the prompts", err);
    study->numbers_table = study->n_tables - 1;
    for (size_t i = 0; i < all->n && status == QKV_OK; i++)
        status = add_mean(e, study, &all->items[i], err);
    return status;
}

static int by_size(const void *a, const void *b) {
    const mean_row *const *x = a, *const *y = b;
    const double first = fabs((*x)->mean), second = fabs((*y)->mean);
    if ((*x)->metric != (*y)->metric) return (*x)->metric < (*y)->metric ? -1 : 1;
    if (first != second) return first > second ? -1 : 1;
    return (*x > *y) - (*x < *y);
}

/* Cells that are not edited count where no others are. */
static size_t list_defined(const effects *e, const mean_rows *all, const mean_row **out) {
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const mean_row *row = &all->items[i];
        const char *target = qkv_sweep_reader_target(e->file, (size_t)row->cell.target);
        const int is_edited = strcmp(target, "none") != 0;
        if (!isnan(row->mean) && (is_edited || !e->sweep->n_targets)) out[n++] = row;
    }
    return n;
}

static int add_largest(const effects *e, qkv_study *study, const mean_rows *all, qkv_error *err) {
    const size_t top = e->options->top ? (size_t)e->options->top : DEFAULT_TOP;
    const mean_row **rows = qkv_calloc(all->n, sizeof *rows);
    size_t taken = 0;
    if (!rows) return qkv_fail_memory(err);
    const size_t n = list_defined(e, all, rows);
    if (n) qsort(rows, n, sizeof *rows, by_size);
    int status = add_table(study, "largest", "Largest means of each metric, by magnitude", err);
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        taken = i && rows[i]->metric == rows[i - 1]->metric ? taken + 1 : 0;
        if (taken < top) status = add_mean(e, study, rows[i], err);
    }
    free(rows);
    return status;
}

/* ---- what a recipe asks for ---- */

static int add_asked(const effects *e, qkv_study *study, qkv_error *err) {
    const json_t *tables = json_object_get(e->recipe, "tables");
    const json_t *greedy = json_object_get(e->recipe, "greedy");
    int status = QKV_OK;
    for (size_t i = 0; i < json_array_size(tables) && status == QKV_OK; i++)
        status = qkv_recipe_add_means(study, json_array_get(tables, i), i, e->file, err);
    if (status == QKV_OK && greedy)
        status = qkv_recipe_add_heads(study, greedy, e->in->session, e->sweep, e->file, err);
    study->n_printed = study->n_tables;
    return status;
}

/* ---- charts ---- */

/* "sink_rate:0.3" and "mean:head" as sink_rate_0_3_mean_head: letters, digits and underscores alone. */
static void name_chart(char out[NAME_SIZE], const char *metric, const char *op) {
    snprintf(out, NAME_SIZE, "%s%s%s", metric, op ? "_" : "", op ? op : "");
    for (char *at = out; *at; at++) {
        *at = qkv_lower(*at);
        if (!((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9'))) *at = '_';
    }
}

static qkv_plot_options plot_options(const effects_options *o, const char *metric, const char *op) {
    qkv_plot_options to = QKV_PLOT_OPTIONS_INIT;
    to.kind = (qkv_plot_kind)o->chart;
    to.metric = metric;
    to.op = op;
    to.band = (qkv_plot_band)o->band;
    to.order = (qkv_plot_order)o->order;
    to.scale = (qkv_plot_scale)o->scale;
    to.axis = (qkv_plot_scale)o->axis;
    to.change = o->change;
    to.top = to.kind == QKV_PLOT_RANKING ? (o->top ? o->top : DEFAULT_TOP) : 0;
    memcpy(to.range, o->range, sizeof to.range);
    return to;
}

/* A metric that has no value anywhere, say one of several tokens on a prompt of one. */
static int is_defined(const mean_rows *all, size_t metric, int32_t op) {
    for (size_t i = 0; i < all->n; i++) {
        const mean_row *row = &all->items[i];
        if (row->metric == metric && !isnan(row->mean) && (op < 0 || row->cell.op == op)) return 1;
    }
    return 0;
}

/* `op` below 0: the only one. */
static int add_chart(const effects *e, qkv_study *study, const mean_rows *all, size_t metric,
                     int32_t op, qkv_error *err) {
    const char *name = qkv_sweep_metric(e->sweep, metric);
    const char *word = op < 0 ? NULL : qkv_sweep_reader_op(e->file, (size_t)op);
    const qkv_plot_options options = plot_options(e->options, name, word);
    char picture[NAME_SIZE];
    qkv_plot *plot = NULL;
    if (!is_defined(all, metric, op)) {
        (void)qkv_study_warn(study, "%s is not defined anywhere here, and has no chart", name);
        return QKV_OK;
    }
    name_chart(picture, name, word);
    int status = qkv_plot_new(&plot, e->file, &options, err);
    if (status == QKV_OK) status = qkv_plot_add(plot, study, picture, err);
    qkv_plot_free(plot);
    return status;
}

/* Unedited cells have the operation "". */
static int add_charts(const effects *e, qkv_study *study, const mean_rows *all, qkv_error *err) {
    const size_t n_ops = qkv_sweep_reader_get_info(e->file)->n_ops;
    size_t n = 0, n_edits = 0;
    int status = QKV_OK;
    for (size_t i = 0; i < n_ops; i++) n_edits += qkv_sweep_reader_op(e->file, i)[0] != '\0';
    for (size_t m = 0; m < e->sweep->n_metrics; m++) {
        for (size_t i = 0; i < n_ops && status == QKV_OK; i++) {
            const int is_edit = qkv_sweep_reader_op(e->file, i)[0] != '\0';
            if (!is_edit && n_edits) continue;
            if (n++ < MOST_CHARTS)
                status = add_chart(e, study, all, m, n_edits > 1 ? (int32_t)i : -1, err);
        }
    }
    if (n > MOST_CHARTS)
        (void)qkv_study_warn(study,
                             "there are charts of the first %d of %zu metrics and operations",
                             (int)MOST_CHARTS, n);
    return status;
}

/* ---- all of it ---- */

static int note(const effects *e, qkv_study *study) {
    const size_t n = e->sweep->n_prompts;
    if (n > 1) (void)qkv_study_note(study, "mean over %zu prompts", n);
    return e->options->change ? qkv_study_note(study, "charts: edited minus unedited") : QKV_OK;
}

int qkv_effects_show(const effects *e, qkv_study *study, qkv_error *err) {
    mean_rows all = {0};
    int status = take_means(&all, e, err);
    if (status == QKV_OK) status = add_asked(e, study, err);
    if (status == QKV_OK && !study->n_printed) status = add_largest(e, study, &all, err);
    if (status == QKV_OK) status = add_means(e, study, &all, err);
    if (status == QKV_OK) status = add_charts(e, study, &all, err);
    if (status == QKV_OK) status = note(e, study);
    free(all.items);
    return status;
}
