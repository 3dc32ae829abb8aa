/*
 * Charts: numbers as a heatmap, as lines with bands, or as ranked bars, drawn to a file.
 *
 *     const double eps[] = {1e-3, 1e-2, 1e-1}, mean[] = {.91, .84, .52};
 *     const qkv_series series = {.label = "Query", .x = eps, .y = mean, .n = 3};
 *     const qkv_lines lines = {.series = &series, .n_series = 1,
 *                              .x = {.label = "ε", .scale = QKV_SCALE_LOG},
 *                              .y = {.label = "first-column mass"}};
 *     qkv_chart_style style;
 *     qkv_chart_style_default(&style);
 *     style.title = "What Scaling the Query Leaves";
 *     qkv_lines_write(&lines, &style, "lines.svg", &err);      // .png, .svg or .pdf
 *
 * Each is drawn to a file or, with qkv_..._render, into memory (see qkv/grid.h).
 *
 * Charts are plain data and read once; nothing is kept. Titles and labels of axes are read as in a
 * grid: text between asterisks is set in italics. Files are written to a temporary name and
 * renamed; the same chart gives the same bytes. NaN stands for "no value" where it is said so;
 * what is infinite, or has no place on a log axis, is refused.
 */
#ifndef QKV_CHART_H
#define QKV_CHART_H

#include "qkv/grid.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_chart_style {
    const char *title;       /* below the chart; NULL = none */
    const char *small_print; /* last line(s), small; NULL = none */
    const char *recipe;      /* embedded in the file; NULL = none */
    double dpi;              /* of a PNG, 150 */
} qkv_chart_style;

QKV_API void qkv_chart_style_default(qkv_chart_style *style);

/* An axis of numbers. low = high (0 and 0): as far as the data reaches. */
typedef struct qkv_chart_axis {
    const char *label; /* NULL: none */
    qkv_scale scale;   /* linear or log */
    double low, high;
} qkv_chart_axis;

/* ---- heatmaps ---- */

/* n_rows x n_cols, row-major; NaN: no value, a white cell with a stroke through it. */
typedef struct qkv_heatmap_panel {
    const double *values;
    int32_t n_rows, n_cols;
    const char *title;             /* NULL: none */
    const char *const *row_labels; /* n_rows and n_cols short texts, NULL: indices */
    const char *const *col_labels;
} qkv_heatmap_panel;

/* One colour scale for all panels. Numbers stand in the cells where there is room for them and
 * they are large enough to be told apart with two decimals; an exact zero stays blank. */
typedef struct qkv_heatmap {
    const qkv_heatmap_panel *panels;
    size_t n_panels;
    const char *row_axis, *col_axis; /* NULL: none */
    qkv_chart_axis color;            /* a log scale cannot show values below 0 */
    int32_t diverging;               /* 1: grey at 0, the same reach to both sides */
} qkv_heatmap;

QKV_API int qkv_heatmap_write(const qkv_heatmap *map, const qkv_chart_style *style,
                              const char *path, qkv_error *err);
QKV_API int qkv_heatmap_render(const qkv_heatmap *map, const qkv_chart_style *style,
                               const char *format, char **bytes, size_t *n_bytes, qkv_error *err);

/* ---- lines ---- */

/* Points in the order in which they are joined. A y of NaN leaves a gap. lower and upper, both or
 * none: the band; on a log axis, what lies at or below 0 of it ends at the chart's edge. */
typedef struct qkv_series {
    const char *label; /* in the legend */
    const double *x, *y;
    const double *lower, *upper;
    size_t n;
} qkv_series;

typedef struct qkv_lines {
    const qkv_series *series;
    size_t n_series; /* up to 48 */
    qkv_chart_axis x, y;
    const char *legend;          /* title of the legend; NULL: none */
    const char *reference_label; /* NULL: none; else a dashed line across at `reference` */
    double reference;
} qkv_lines;

QKV_API int qkv_lines_write(const qkv_lines *lines, const qkv_chart_style *style, const char *path,
                            qkv_error *err);
QKV_API int qkv_lines_render(const qkv_lines *lines, const qkv_chart_style *style,
                             const char *format, char **bytes, size_t *n_bytes, qkv_error *err);

/* ---- bars ---- */

/* From 0 to the value, the first at the top; lower to upper a whisker, equal: none. */
typedef struct qkv_bar {
    const char *label;
    double value;
    double lower, upper;
    int32_t group; /* which of the groups: its colour */
} qkv_bar;

typedef struct qkv_bars {
    const qkv_bar *bars;
    size_t n_bars; /* up to 2000; labels are thinned out where they do not fit */
    qkv_chart_axis axis;
    const char *const *groups; /* names for the legend; NULL: none */
    size_t n_groups;
} qkv_bars;

QKV_API int qkv_bars_write(const qkv_bars *bars, const qkv_chart_style *style, const char *path,
                           qkv_error *err);
QKV_API int qkv_bars_render(const qkv_bars *bars, const qkv_chart_style *style, const char *format,
                            char **bytes, size_t *n_bytes, qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
