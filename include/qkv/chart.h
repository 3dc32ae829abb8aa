/*
 * Charts: numbers as a heatmap, drawn to a file or, with qkv_heatmap_render, into memory.
 *
 *     const double values[] = {.91, .84, .52, .13};
 *     qkv_heatmap_panel panel = QKV_HEATMAP_PANEL_INIT;
 *     panel.values = values;
 *     panel.n_rows = panel.n_cols = 2;
 *     qkv_heatmap map = QKV_HEATMAP_INIT;
 *     map.panels = &panel;
 *     map.n_panels = 1;
 *     map.color.label = "first-column mass";
 *     qkv_chart_style style = QKV_CHART_STYLE_INIT;
 *     style.title = "What Scaling the Query Leaves";
 *     qkv_heatmap_write(&map, &style, "heatmap.svg", &err); // .png, .svg or .pdf
 *
 * Charts are plain data and read once; nothing is kept, and any thread may draw. Panels are an array,
 * all of one size. Titles and labels of axes are read as in a grid: text between asterisks is set in
 * italics. Files are written to a temporary name and renamed; the same chart gives the same bytes. NaN
 * stands for "no value"; what is infinite, or has no place on a log scale, is refused.
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

#ifdef __cplusplus
}
#endif

#endif
