/* Summaries into charts, and onto a page: heatmap, lines, ranking. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "draw/draw.h"
#include "qkv/chart.h"
#include "study/plot_numbers.h"
#include "study/print.h"
#include "study/study.h"

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

/* ---- the page ---- */

/* Where a plot goes, and the texts of its chart. */
typedef struct page {
    const qkv_plot *p;
    qkv_study *study; /* as a picture of this name; NULL: */
    const char *name;
    const char *path;   /* NULL: memory */
    const char *format; /* in memory */
    char **bytes;
    size_t *n_bytes;
    words kept;
} page;

typedef int (*chart_writer)(const page *to, const void *chart, const qkv_chart_style *style,
                            qkv_error *err);

static int write_heatmap(const page *to, const void *chart, const qkv_chart_style *style,
                         qkv_error *err) {
    if (to->study) return qkv_study_add_heatmap(to->study, to->name, to->p->title, chart, err);
    if (to->path) return qkv_heatmap_write(chart, style, to->path, err);
    return qkv_heatmap_render(chart, style, to->format, to->bytes, to->n_bytes, err);
}

static int write_lines(const page *to, const void *chart, const qkv_chart_style *style,
                       qkv_error *err) {
    if (to->study) return qkv_study_add_lines(to->study, to->name, to->p->title, chart, err);
    if (to->path) return qkv_lines_write(chart, style, to->path, err);
    return qkv_lines_render(chart, style, to->format, to->bytes, to->n_bytes, err);
}

static int write_bars(const page *to, const void *chart, const qkv_chart_style *style,
                      qkv_error *err) {
    if (to->study) return qkv_study_add_bars(to->study, to->name, to->p->title, chart, err);
    if (to->path) return qkv_bars_write(chart, style, to->path, err);
    return qkv_bars_render(chart, style, to->format, to->bytes, to->n_bytes, err);
}

static int write_page(const page *to, const void *chart, chart_writer write, qkv_error *err) {
    qkv_chart_style style = QKV_CHART_STYLE_INIT;
    style.title = to->p->title;
    style.small_print = to->p->options.hide_notes ? NULL : to->p->small_print;
    style.text = to->p->options.text;
    style.font = to->p->font;
    style.width = to->p->options.width;
    style.recipe = to->p->options.no_recipe ? NULL : to->p->recipe;
    style.font_size = to->p->options.font_size;
    style.dpi = qkv_print_dpi(to->p->options.dpi, style.width);
    return write(to, chart, &style, err);
}

static int set_axis(const qkv_plot *p, qkv_chart_axis *axis, words *list, qkv_error *err) {
    qkv_text label = {0};
    qkv_plot_value_label(p, &label);
    axis->label = keep_text(list, &label);
    if (!axis->label) return qkv_fail_memory(err);
    if (p->options.scale == QKV_PLOT_SCALE_LOG) axis->scale = QKV_SCALE_LOG;
    axis->low = p->options.range[0];
    axis->high = p->options.range[1];
    return QKV_OK;
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

static int fill_panels(const qkv_plot *p, qkv_heatmap_panel *panels, double *values,
                       const char *const *rows, const char *const *cols, words *kept) {
    const size_t n = p->layers.n * p->heads.n;
    for (size_t i = 0; i < p->n_groups; i++) values[i] = p->groups[i].mean;
    for (size_t t = 0; t < p->targets.n; t++) {
        qkv_text title = {0};
        qkv_plot_panel_title(p, t, &title);
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

qkv_colormap qkv_plot_colormap(const qkv_plot *p) {
    if (p->options.colormap != QKV_COLORMAP_AUTO) return p->options.colormap;
    return p->is_signed ? QKV_COLORMAP_COOLWARM : QKV_COLORMAP_VIRIDIS;
}

static int draw_heatmap(page *to, qkv_error *err) {
    const qkv_plot *p = to->p;
    words *kept = &to->kept;
    qkv_heatmap_panel *panels = qkv_calloc(p->targets.n, sizeof *panels);
    double *values = qkv_calloc(p->n_groups, sizeof *values);
    const char **rows = index_labels(&p->layers, kept), **cols = index_labels(&p->heads, kept);
    qkv_heatmap map = {.size = sizeof(qkv_heatmap),
                       .panels = panels,
                       .n_panels = p->targets.n,
                       .row_axis = "Layer",
                       .col_axis = "Head",
                       .diverging = p->is_signed,
                       .colormap = qkv_plot_colormap(p)};
    int status = set_axis(p, &map.color, kept, err);
    if (status == QKV_OK &&
        !(panels && values && rows && cols && fill_panels(p, panels, values, rows, cols, kept))) {
        status = qkv_fail_memory(err);
    }
    if (status == QKV_OK) status = write_page(to, &map, write_heatmap, err);
    free(panels);
    free(values);
    free(rows);
    free(cols);
    return status;
}

/* ---- lines ---- */

static const char *series_label(const qkv_plot *p, size_t series, words *kept) {
    qkv_text text = {0};
    if (p->by == QKV_PLOT_BY_TARGET) {
        qkv_text_puts(&text, qkv_plot_target_name(p, series));
    } else if (p->by == QKV_PLOT_BY_HEAD) {
        qkv_plot_head_name(p, series / p->heads.n, series % p->heads.n, &text);
    } else if (p->layers.at[series] < 0) {
        qkv_text_puts(&text, "all layers");
    } else {
        qkv_text_printf(&text, "layer %d", (int)p->layers.at[series]);
    }
    return keep_text(kept, &text);
}

/* y, lower and upper of all series, one after another: 3 x n_groups. */
static void fill_points(const qkv_plot *p, double *points) {
    for (size_t i = 0; i < p->n_groups; i++) {
        points[i] = p->groups[i].mean;
        points[p->n_groups + i] = p->groups[i].low;
        points[2 * p->n_groups + i] = p->groups[i].high;
    }
}

static int has_values(const qkv_plot *p, size_t series) {
    for (size_t e = 0; e < p->n_epsilons; e++) {
        if (p->groups[series * p->n_epsilons + e].prompts) return 1;
    }
    return 0;
}

static int fill_series(const qkv_plot *p, qkv_lines *lines, qkv_series *series,
                       const double *points, words *kept, qkv_error *err) {
    const int banded = p->most_prompts > 1 && p->options.band != QKV_PLOT_BAND_NONE;
    for (size_t s = 0; s < qkv_plot_n_series(p); s++) {
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

static int draw_lines(page *to, qkv_error *err) {
    const qkv_plot *p = to->p;
    words *kept = &to->kept;
    qkv_series *series = qkv_calloc(qkv_plot_n_series(p), sizeof *series);
    double *points = qkv_calloc(p->n_groups, 3 * sizeof *points);
    qkv_lines lines = {.size = sizeof(qkv_lines),
                       .x = {.label = "\xce\xb5",
                             .scale = p->options.axis == QKV_PLOT_SCALE_LINEAR ? QKV_SCALE_LINEAR
                                                                               : QKV_SCALE_LOG}};
    const int shown = p->options.scale != QKV_PLOT_SCALE_LOG || p->reference > 0;
    if (!isnan(p->reference) && shown) {
        lines.reference = p->reference;
        lines.reference_label = "unedited";
    }
    int status = series && points ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) status = set_axis(p, &lines.y, kept, err);
    if (status == QKV_OK) {
        fill_points(p, points);
        status = fill_series(p, &lines, series, points, kept, err);
    }
    if (status == QKV_OK) status = write_page(to, &lines, write_lines, err);
    free(series);
    free(points);
    return status;
}

/* ---- ranking ---- */

static int fill_bars(const qkv_plot *p, qkv_bar *bars, words *kept) {
    const size_t heads = p->heads.n, places = p->layers.n * heads;
    for (size_t i = 0; i < p->n_shown; i++) {
        const size_t group = p->shown[i], place = group % places;
        const plot_summary *summary = &p->groups[group];
        qkv_text label = {0};
        qkv_plot_head_name(p, place / heads, place % heads, &label);
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

static int draw_ranking(page *to, qkv_error *err) {
    const qkv_plot *p = to->p;
    const char **groups = qkv_calloc(p->targets.n, sizeof *groups);
    qkv_bar *bars = qkv_calloc(p->n_shown, sizeof *bars);
    int status = QKV_OK;
    if (!groups || !bars || !fill_bars(p, bars, &to->kept)) status = qkv_fail_memory(err);
    for (size_t i = 0; status == QKV_OK && i < p->targets.n; i++) {
        groups[i] = qkv_plot_target_name(p, i);
    }
    qkv_bars chart = {.size = sizeof(qkv_bars),
                      .bars = bars,
                      .n_bars = p->n_shown,
                      .groups = groups,
                      .n_groups = p->targets.n};
    if (status == QKV_OK) status = set_axis(p, &chart.axis, &to->kept, err);
    if (status == QKV_OK) status = write_page(to, &chart, write_bars, err);
    free(groups);
    free(bars);
    return status;
}

/* ---- the plot ---- */

static int draw_plot(page *to, qkv_error *err) {
    static int (*const draw[])(page *, qkv_error *) = {[QKV_PLOT_HEATMAP] = draw_heatmap,
                                                       [QKV_PLOT_LINES] = draw_lines,
                                                       [QKV_PLOT_RANKING] = draw_ranking};
    const int status = draw[to->p->kind](to, err);
    release_words(&to->kept);
    return status;
}

static int is_html(const char *suffix) {
    return qkv_equal_ignoring_case(suffix, "html");
}

int qkv_plot_write(const qkv_plot *plot, const char *path, qkv_error *err) {
    if (!plot || !path) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "drawing needs a plot and the path of a file");
    }
    if (is_html(qkv_path_suffix(path))) {
        qkv_text text = {0};
        int status = qkv_plot_html(plot, &text, err);
        if (status == QKV_OK) status = qkv_output_write(path, text.data, text.length, err);
        qkv_text_release(&text);
        return status;
    }
    return draw_plot(&(page){.p = plot, .path = path}, err);
}

int qkv_plot_render(const qkv_plot *plot, const char *format, char **bytes, size_t *n_bytes,
                    qkv_error *err) {
    if (bytes) *bytes = NULL;
    if (n_bytes) *n_bytes = 0;
    if (!plot || !format || !bytes || !n_bytes) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "drawing needs a plot, a format and a place");
    }
    if (is_html(format)) {
        qkv_text text = {0};
        const int status = qkv_plot_html(plot, &text, err);
        if (status != QKV_OK) return qkv_text_release(&text), status;
        *bytes = text.data;
        *n_bytes = text.length;
        return QKV_OK;
    }
    return draw_plot(&(page){.p = plot, .format = format, .bytes = bytes, .n_bytes = n_bytes}, err);
}

/* Cells of a heatmap open the attention of their head, where each is one. */
static int link_cells(const qkv_plot *p, qkv_study *study) {
    if (p->kind != QKV_PLOT_HEATMAP || p->layers.at[0] < 0 || p->heads.at[0] < 0) return QKV_OK;
    (void)qkv_study_link(study, STUDY_LAYERS_HEADS, 0);
    return qkv_study_link_places(study, p->layers.at, p->heads.at);
}

int qkv_plot_add(const qkv_plot *plot, qkv_study *study, const char *name, qkv_error *err) {
    const int status = draw_plot(&(page){.p = plot, .study = study, .name = name}, err);
    return status == QKV_OK ? link_cells(plot, study) : status;
}
