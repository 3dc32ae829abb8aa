/*
 * Charts: numbers as a heatmap, as lines with bands, or as ranked bars, drawn to a file.
 *
 *     const double eps[] = {1e-3, 1e-2, 1e-1}, mean[] = {.91, .84, .52};
 *     qkv_series series = QKV_SERIES_INIT;
 *     series.label = "Query";
 *     series.x = eps;
 *     series.y = mean;
 *     series.n = 3;
 *     qkv_lines lines = QKV_LINES_INIT;
 *     lines.series = &series;
 *     lines.n_series = 1;
 *     lines.x = (qkv_chart_axis){.label = "ε", .scale = QKV_SCALE_LOG};
 *     lines.y.label = "first-column mass";
 *     qkv_chart_style style = QKV_CHART_STYLE_INIT;
 *     style.title = "What Scaling the Query Leaves";
 *     qkv_lines_write(&lines, &style, "lines.svg", &err); // .png, .svg or .pdf
 *
 * Each is drawn to a file or, with qkv_..._render, into memory (see qkv/bytes.h).
 *
 * Charts are plain data and read once; nothing is kept, and any thread may draw. Panels, series and
 * bars are arrays, all of one size. Titles and labels of axes are read as in a grid: text between
 * asterisks is set in italics. Files are written to a temporary name and renamed; the same chart
 * gives the same bytes. NaN stands for "no value" where it is said so; what is infinite, or has no
 * place on a log axis, is refused; but 0 on that of x stands apart at its low end, where the axis is
 * broken. Lines that lie on each other are dashed in turn, and the legend says which they are.
 */
#ifndef QKV_CHART_H
#define QKV_CHART_H

#include "qkv/grid.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_chart_style {
    size_t size;
    const char *title;       /* below the chart; NULL = none */
    const char *small_print; /* last line(s), small; NULL = none */
    const char *recipe;      /* embedded in the file; NULL = none */
    double dpi;              /* of a PNG, 150 */
    /* As in a qkv_grid_style. */
    qkv_text_form text;
    const char *font; /* NULL: DejaVu Sans */
    double width;     /* of the page, points; 0: as wide as its content */
    double font_size; /* points; 0: 8, or what the width allows */
} qkv_chart_style;

#define QKV_CHART_STYLE_INIT                                                                       \
    { .size = sizeof(qkv_chart_style), .dpi = 150 }

/* The same for callers that cannot use the initialiser: they set the size first. */
QKV_API int qkv_chart_style_default(qkv_chart_style *style, qkv_error *err);

/* An axis of numbers. low = high (0 and 0): as far as the data reaches. It is a part of other
 * structs, has no size, and will never grow. */
typedef struct qkv_chart_axis {
    const char *label; /* NULL: none */
    qkv_scale scale;   /* linear or log */
    double low, high;
} qkv_chart_axis;

/* ---- heatmaps ---- */

/* n_rows x n_cols, row-major; NaN: no value, a white cell with a stroke through it. */
typedef struct qkv_heatmap_panel {
    size_t size;
    const double *values;
    int32_t n_rows, n_cols;
    const char *title;             /* NULL: none */
    const char *const *row_labels; /* n_rows and n_cols short texts, NULL: indices */
    const char *const *col_labels;
    /* n_rows x n_cols texts that stand in the cells in place of numbers, where there is room; what is too
     * long is cut, NULL or "" stays empty. NULL: numbers. */
    const char *const *cell_texts;
    /* n_rows x n_cols numbers of the map's categories, -1: none. NULL: there are none. */
    const int32_t *cell_categories;
} qkv_heatmap_panel;

#define QKV_HEATMAP_PANEL_INIT                                                                     \
    { .size = sizeof(qkv_heatmap_panel) }

/* One colour scale for all panels. Numbers stand in the cells where there is room for them; an exact
 * zero stays empty. Values on both sides of 0 make the scale diverging, unless a range is given. */
typedef struct qkv_heatmap {
    size_t size;
    const qkv_heatmap_panel *panels;
    size_t n_panels;
    const char *row_axis, *col_axis; /* NULL: none */
    qkv_chart_axis color;            /* a log scale cannot show values below 0 */
    int32_t diverging;               /* 1: grey at 0, the same reach to both sides */
    qkv_colormap colormap;           /* AUTO: viridis; coolwarm where the scale is diverging */
    /* Up to 7 short names of what cells are: each has a hue, which is paler for values near the low end
     * of the colour range. The bar shows hues and names in place of numbers, and its label the ends of
     * the range. All panels then have cell_categories. A colormap other than AUTO shows the values
     * alone. NULL: no categories. */
    const char *const *categories;
    size_t n_categories;
} qkv_heatmap;

#define QKV_HEATMAP_INIT                                                                           \
    { .size = sizeof(qkv_heatmap) }

QKV_API int qkv_heatmap_write(const qkv_heatmap *map, const qkv_chart_style *style,
                              const char *path, qkv_error *err);
QKV_API int qkv_heatmap_render(const qkv_heatmap *map, const qkv_chart_style *style,
                               const char *format, char **bytes, size_t *n_bytes, qkv_error *err);

/* ---- lines ---- */

/* Points in the order in which they are joined. A y of NaN leaves a gap. lower and upper, both or
 * none: the band; on a log axis, what lies at or below 0 of it ends at the chart's edge. */
typedef struct qkv_series {
    size_t size;
    const char *label; /* in the legend */
    const double *x, *y;
    const double *lower, *upper;
    size_t n;
} qkv_series;

#define QKV_SERIES_INIT                                                                            \
    { .size = sizeof(qkv_series) }

typedef struct qkv_lines {
    size_t size;
    const qkv_series *series;
    size_t n_series; /* up to 48 */
    qkv_chart_axis x, y;
    const char *legend;          /* title of the legend; NULL: none */
    const char *reference_label; /* NULL: none; else a dashed line across at `reference` */
    double reference;
} qkv_lines;

#define QKV_LINES_INIT                                                                             \
    { .size = sizeof(qkv_lines) }

QKV_API int qkv_lines_write(const qkv_lines *lines, const qkv_chart_style *style, const char *path,
                            qkv_error *err);
QKV_API int qkv_lines_render(const qkv_lines *lines, const qkv_chart_style *style,
                             const char *format, char **bytes, size_t *n_bytes, qkv_error *err);

/* ---- bars ---- */

/* From 0 to the value, the first at the top; lower to upper a whisker, equal: none. */
typedef struct qkv_bar {
    size_t size;
    const char *label;
    double value;
    double lower, upper;
    int32_t group; /* which of the groups: its colour */
} qkv_bar;

#define QKV_BAR_INIT                                                                               \
    { .size = sizeof(qkv_bar) }

typedef struct qkv_bars {
    size_t size;
    const qkv_bar *bars;
    size_t n_bars; /* up to 2000; labels are thinned out where they do not fit */
    qkv_chart_axis axis;
    const char *const *groups; /* names for the legend; NULL: none */
    size_t n_groups;
} qkv_bars;

#define QKV_BARS_INIT                                                                              \
    { .size = sizeof(qkv_bars) }

QKV_API int qkv_bars_write(const qkv_bars *bars, const qkv_chart_style *style, const char *path,
                           qkv_error *err);
QKV_API int qkv_bars_render(const qkv_bars *bars, const qkv_chart_style *style, const char *format,
                            char **bytes, size_t *n_bytes, qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
