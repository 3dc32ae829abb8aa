/*
 * What the rooms above use of draw/ beside the public headers: lines with bands and ranked bars, what a
 * drawing would lack, and the scripts that no font has. Any thread may draw.
 *
 * Where y is NaN there is no value; what is infinite, or has no place on a log axis, is refused; but 0 on
 * that of x stands apart at its low end, where the axis is broken. Lines that lie on each other are dashed
 * in turn, and the legend says which they are.
 */
#ifndef QKV_DRAW_DRAW_H
#define QKV_DRAW_DRAW_H

#include "qkv/chart.h"

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

int qkv_lines_write(const qkv_lines *lines, const qkv_chart_style *style, const char *path,
                    qkv_error *err);
int qkv_lines_render(const qkv_lines *lines, const qkv_chart_style *style, const char *format,
                     char **bytes, size_t *n_bytes, qkv_error *err);

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

int qkv_bars_write(const qkv_bars *bars, const qkv_chart_style *style, const char *path,
                   qkv_error *err);
int qkv_bars_render(const qkv_bars *bars, const qkv_chart_style *style, const char *format,
                    char **bytes, size_t *n_bytes, qkv_error *err);

/* ---- grids ---- */

/* "auto", "largest", "magnitude"; NULL past the end. */
const char *qkv_pooling_name(qkv_pooling pooling);

/* "png", "svg", "pdf": what grids and charts can be drawn as; NULL past the end. */
const char *qkv_grid_format(size_t index);

/* What the style asks for and cells are too small for, in numbers of panels. */
typedef struct qkv_grid_report {
    size_t size;
    int32_t panels;          /* all that hold values */
    int32_t without_values;  /* no numbers in their cells */
    int32_t thinned;         /* labels at every second or third row or column only */
    int32_t with_indices;    /* indices in place of labels */
    int32_t pooled;          /* pixels that stand for several cells */
    int32_t cells_per_pixel; /* along a side, in the panel where they are most; 1: all are seen */
    double dpi;              /* of a PNG, as it is drawn */
    uint64_t scripts;        /* bit i: no font has all glyphs of script i, see below */
} qkv_grid_report;

#define QKV_GRID_REPORT_INIT                                                                       \
    { .size = sizeof(qkv_grid_report) }

/* Fails where qkv_grid_write would fail whatever the disk is like, and says in *report what would
 * be missing from the drawing. Writes nothing. */
int qkv_grid_check(const qkv_grid *grid, const qkv_grid_style *style, const char *path,
                   qkv_grid_report *report, qkv_error *err);

/* The colour that a value gets in a cell that is not masked, 0xRRGGBB. A style that cannot be read counts as the default. */
uint32_t qkv_grid_color(const qkv_grid_style *style, double value);

/* ---- fonts ---- */

/* A drawing takes letters that its font lacks from any other font that fontconfig finds, without a
 * word. Letters that no font has become boxes with their number. */

/* Fails when fontconfig has no such family, and says which it has. */
int qkv_font_check(const char *family, qkv_error *err);

/* Sets bit i of *scripts for every script i of the text that no font has all glyphs for. font is
 * the family that is tried first; NULL: the default. */
int qkv_fonts_missing(const char *text, const char *font, uint64_t *scripts, qkv_error *err);

/* "Devanagari", "emoji"; NULL past the end. */
const char *qkv_script_name(size_t script);
/* The package of Debian that has glyphs for it, "fonts-noto-core"; "" where none is known; NULL past
 * the end. */
const char *qkv_script_package(size_t script);

#endif
