/* Summaries into charts: heatmap, lines, ranking. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/plot.h"

enum { DEFAULT_TOP = 20 };

/* Texts that a chart points to. */
typedef struct words {
    char **at;
    size_t n, capacity;
} words;

/* Takes over what was written into `text`; NULL when memory is short. */
static const char *keep_text(words *list, qkv_text *text) {
    qkv_text_puts(text, "");
    if (!text->failed && QKV_PUSH(list->at, list->capacity, list->n, text->data)) {
        *text = (qkv_text){0};
        return list->at[list->n - 1];
    }
    qkv_text_release(text);
    return NULL;
}

static void release_words(words *list) {
    for (size_t i = 0; i < list->n; i++) free(list->at[i]);
    free(list->at);
}

/* ---- style and files ---- */

typedef int (*chart_writer)(const void *chart, const qkv_chart_style *style, const char *path,
                            qkv_error *err);

static int write_heatmap(const void *chart, const qkv_chart_style *style, const char *path,
                         qkv_error *err) {
    return qkv_heatmap_write(chart, style, path, err);
}

static int write_lines(const void *chart, const qkv_chart_style *style, const char *path,
                       qkv_error *err) {
    return qkv_lines_write(chart, style, path, err);
}

static int write_bars(const void *chart, const qkv_chart_style *style, const char *path,
                      qkv_error *err) {
    return qkv_bars_write(chart, style, path, err);
}

static int write_outputs(const plot *p, const void *chart, chart_writer write, qkv_error *err) {
    const cli_list *outputs = &p->args->outputs;
    qkv_text title = {0}, small_print = {0};
    qkv_chart_style style = QKV_CHART_STYLE_INIT;
    plot_title(p, &title);
    plot_small_print(p, &small_print);
    char *recipe = plot_recipe(p);
    int status = title.failed || small_print.failed || !recipe ? qkv_fail_memory(err) : QKV_OK;
    style.title = p->args->title ? p->args->title : title.data;
    if (style.title && !style.title[0]) style.title = NULL;
    style.small_print = small_print.data;
    style.recipe = recipe;
    if (p->args->dpi > 0) style.dpi = p->args->dpi;
    for (size_t i = 0; i < outputs->n && status == QKV_OK; i++) {
        status = write(chart, &style, outputs->items[i].value, err);
    }
    qkv_text_release(&title);
    qkv_text_release(&small_print);
    free(recipe);
    return status;
}

static int set_axis(const plot *p, qkv_chart_axis *axis, words *list, qkv_error *err) {
    qkv_text label = {0};
    plot_value_label(p, &label);
    axis->label = keep_text(list, &label);
    if (!axis->label) return qkv_fail_memory(err);
    if (p->args->scale == QKV_SCALE_LOG) axis->scale = QKV_SCALE_LOG;
    return p->args->range ? cli_parse_range(p->args->range, &axis->low, &axis->high, err) : QKV_OK;
}

/* ---- heatmap ---- */

static const char **index_labels(const plot_indices *list, words *kept) {
    const char **labels = qkv_calloc(list->n, sizeof *labels);
    for (size_t i = 0; labels && i < list->n; i++) {
        qkv_text text = {0};
        if (list->at[i] < 0) {
            qkv_text_puts(&text, "all");
        } else {
            qkv_text_printf(&text, "%d", (int)list->at[i]);
        }
        labels[i] = keep_text(kept, &text);
        if (labels[i]) continue;
        free(labels);
        labels = NULL;
    }
    return labels;
}

static int fill_panels(const plot *p, qkv_heatmap_panel *panels, double *values,
                       const char *const *rows, const char *const *cols, words *kept) {
    const size_t n = p->layers.n * p->heads.n;
    for (size_t i = 0; i < p->n_groups; i++) values[i] = p->groups[i].mean;
    for (size_t t = 0; t < p->targets.n; t++) {
        qkv_text title = {0};
        plot_panel_title(p, t, &title);
        panels[t] = (qkv_heatmap_panel){
            .size = sizeof(qkv_heatmap_panel),
            .values = values + t * n,
            .n_rows = (int32_t)p->layers.n,
            .n_cols = (int32_t)p->heads.n,
            .title = keep_text(kept, &title),
            .row_labels = rows,
            .col_labels = cols,
        };
        if (!panels[t].title) return 0;
    }
    return 1;
}

static int draw_heatmap(const plot *p, words *kept, qkv_error *err) {
    qkv_heatmap_panel *panels = qkv_calloc(p->targets.n, sizeof *panels);
    double *values = qkv_calloc(p->n_groups, sizeof *values);
    const char **rows = index_labels(&p->layers, kept), **cols = index_labels(&p->heads, kept);
    qkv_heatmap map = {.size = sizeof(qkv_heatmap),
                       .panels = panels,
                       .n_panels = p->targets.n,
                       .row_axis = "Layer",
                       .col_axis = "Head",
                       .diverging = p->args->change};
    int status = set_axis(p, &map.color, kept, err);
    if (status == QKV_OK &&
        !(panels && values && rows && cols && fill_panels(p, panels, values, rows, cols, kept))) {
        status = qkv_fail_memory(err);
    }
    if (status == QKV_OK) status = write_outputs(p, &map, write_heatmap, err);
    free(panels);
    free(values);
    free(rows);
    free(cols);
    return status;
}

/* ---- lines ---- */

static const char *series_label(const plot *p, size_t series, words *kept) {
    qkv_text text = {0};
    if (p->by == PLOT_BY_TARGET) {
        qkv_text_puts(&text, plot_target_name(p, series));
    } else if (p->by == PLOT_BY_HEAD) {
        plot_head_name(p, series / p->heads.n, series % p->heads.n, &text);
    } else if (p->layers.at[series] < 0) {
        qkv_text_puts(&text, "all layers");
    } else {
        qkv_text_printf(&text, "layer %d", (int)p->layers.at[series]);
    }
    return keep_text(kept, &text);
}

/* y, lower and upper of all series, one after another: 3 x n_groups. */
static void fill_points(const plot *p, double *points) {
    for (size_t i = 0; i < p->n_groups; i++) {
        points[i] = p->groups[i].mean;
        points[p->n_groups + i] = p->groups[i].low;
        points[2 * p->n_groups + i] = p->groups[i].high;
    }
}

static int has_values(const plot *p, size_t series) {
    for (size_t e = 0; e < p->n_epsilons; e++) {
        if (p->groups[series * p->n_epsilons + e].prompts) return 1;
    }
    return 0;
}

static int fill_series(const plot *p, qkv_lines *lines, qkv_series *series, const double *points,
                       words *kept, qkv_error *err) {
    const int banded = p->most_prompts > 1 && p->args->band != PLOT_BAND_NONE;
    for (size_t s = 0; s < plot_n_series(p); s++) {
        const double *y = points + s * p->n_epsilons;
        if (!has_values(p, s)) continue;
        qkv_series *next = &series[lines->n_series++];
        *next = (qkv_series){.size = sizeof(qkv_series),
                             .label = series_label(p, s, kept),
                             .x = p->epsilons,
                             .y = y,
                             .lower = banded ? y + p->n_groups : NULL,
                             .upper = banded ? y + 2 * p->n_groups : NULL,
                             .n = p->n_epsilons};
        if (!next->label) return qkv_fail_memory(err);
    }
    lines->series = series;
    return QKV_OK;
}

static int check_log(const plot *p, qkv_error *err) {
    for (size_t i = 0; p->args->scale == QKV_SCALE_LOG && i < p->n_groups; i++) {
        if (isnan(p->groups[i].mean) || p->groups[i].mean > 0) continue;
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "--scale log cannot show values of 0 or below, and a mean is %g",
                        p->groups[i].mean);
    }
    return QKV_OK;
}

static int draw_lines(const plot *p, words *kept, qkv_error *err) {
    qkv_series *series = qkv_calloc(plot_n_series(p), sizeof *series);
    double *points = qkv_calloc(p->n_groups, 3 * sizeof *points);
    qkv_lines lines = {
        .size = sizeof(qkv_lines),
        .x = {.label = "\xce\xb5",
              .scale = p->args->axis == PLOT_AXIS_LINEAR ? QKV_SCALE_LINEAR : QKV_SCALE_LOG}};
    const int shown = p->args->scale != QKV_SCALE_LOG || p->reference > 0;
    if (!isnan(p->reference) && shown) {
        lines.reference = p->reference;
        lines.reference_label = "unedited";
    }
    int status = series && points ? check_log(p, err) : qkv_fail_memory(err);
    if (status == QKV_OK) status = set_axis(p, &lines.y, kept, err);
    if (status == QKV_OK) {
        fill_points(p, points);
        status = fill_series(p, &lines, series, points, kept, err);
    }
    if (status == QKV_OK) status = write_outputs(p, &lines, write_lines, err);
    free(series);
    free(points);
    return status;
}

/* ---- ranking ---- */

typedef struct ranked {
    double key; /* the largest comes first */
    size_t group;
} ranked;

static int by_key(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    return (x->group > y->group) - (x->group < y->group);
}

static double sort_key(const plot *p, double mean) {
    int order = p->args->order;
    if (order == PLOT_ORDER_AUTO) {
        order = p->args->change ? PLOT_ORDER_MAGNITUDE : PLOT_ORDER_LARGEST;
    }
    if (order == PLOT_ORDER_SMALLEST) return -mean;
    return order == PLOT_ORDER_MAGNITUDE ? fabs(mean) : mean;
}

/* The groups with values in order; returns how many. */
static size_t rank(const plot *p, ranked *list) {
    size_t n = 0;
    for (size_t i = 0; i < p->n_groups; i++) {
        if (!p->groups[i].prompts) continue;
        list[n++] = (ranked){sort_key(p, p->groups[i].mean), i};
    }
    if (n) qsort(list, n, sizeof *list, by_key);
    return n;
}

static int fill_bars(const plot *p, const ranked *list, qkv_bar *bars, size_t n, words *kept) {
    const size_t heads = p->heads.n, places = p->layers.n * heads;
    for (size_t i = 0; i < n; i++) {
        const size_t group = list[i].group, place = group % places;
        const plot_summary *summary = &p->groups[group];
        qkv_text label = {0};
        plot_head_name(p, place / heads, place % heads, &label);
        bars[i] = (qkv_bar){.size = sizeof *bars,
                            .label = keep_text(kept, &label),
                            .value = summary->mean,
                            .lower = summary->low,
                            .upper = summary->high,
                            .group = (int32_t)(group / places)};
        if (!bars[i].label) return 0;
    }
    return 1;
}

static int draw_ranking(const plot *p, words *kept, qkv_error *err) {
    ranked *list = qkv_calloc(p->n_groups, sizeof *list);
    const char **groups = qkv_calloc(p->targets.n, sizeof *groups);
    qkv_bar *bars = NULL;
    int status = QKV_OK;
    if (!list || !groups) {
        status = qkv_fail_memory(err);
        goto done;
    }
    const size_t top = p->args->top ? (size_t)p->args->top : DEFAULT_TOP;
    const size_t ranked_groups = rank(p, list), n = ranked_groups < top ? ranked_groups : top;
    for (size_t i = 0; i < p->targets.n; i++) groups[i] = plot_target_name(p, i);
    bars = qkv_calloc(n, sizeof *bars);
    if (!bars || !fill_bars(p, list, bars, n, kept)) {
        status = qkv_fail_memory(err);
        goto done;
    }
    qkv_bars chart = {.size = sizeof(qkv_bars),
                      .bars = bars,
                      .n_bars = n,
                      .groups = groups,
                      .n_groups = p->targets.n};
    status = set_axis(p, &chart.axis, kept, err);
    if (status == QKV_OK) status = write_outputs(p, &chart, write_bars, err);
done:
    free(list);
    free(groups);
    free(bars);
    return status;
}

int plot_draw(const plot *p, qkv_error *err) {
    static int (*const draw[])(const plot *, words *, qkv_error *) = {
        [PLOT_HEATMAP] = draw_heatmap, [PLOT_LINES] = draw_lines, [PLOT_RANKING] = draw_ranking};
    words kept = {0};
    const int status = draw[p->kind](p, &kept, err);
    release_words(&kept);
    return status;
}
