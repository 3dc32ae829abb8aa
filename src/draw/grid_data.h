/*
 * What a qkv_grid holds: copies of everything its caller handed over. Only src/draw sees inside.
 */
#ifndef QKV_DRAW_GRID_DATA_H
#define QKV_DRAW_GRID_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "base/first_key.h"
#include "qkv/grid.h"

/*
 * Keys and distances that hold much of a map's weight: columns and diagonals.
 *
 * On the map of a long prompt such a line is a fraction of a millimetre wide, and a reader would not see
 * where most of the weight lies. It is drawn just wide enough to be seen (panel_image.c), and the small
 * print says so.
 */

#define QKV_STRONG_SHARE 0.1    /* of the weight of the whole map */
enum { QKV_STRONG_PIXELS = 3 }; /* across such a line, at least */
enum { QKV_MOST_STRONG = 10 };

typedef struct qkv_strong_lines {
    int32_t cols[QKV_MOST_STRONG], diagonals[QKV_MOST_STRONG]; /* of a diagonal: row - column */
    int n_cols, n_diagonals;
} qkv_strong_lines;

/* Of values of either sign, their magnitude; NaN counts for nothing. 0 when memory is short. */
int qkv_strong_lines_find(qkv_strong_lines *found, const float *values, int32_t n_rows,
                          int32_t n_cols);

typedef struct qkv_panel_data {
    float *values; /* NULL: no panel in this cell of the grid */
    int32_t n_rows;
    int32_t n_cols;
    int32_t first_col;
    int32_t causal, window, extra_cols;
    int borrowed; /* values are the caller's */
    char *title;
    char *side; /* left of the panel */
    char **row_labels;
    char **col_labels;
    char **cell_texts;       /* n_rows x n_cols texts in place of numbers; NULL: numbers */
    float smallest, largest; /* of what a mask left */
    qkv_strong_lines strong; /* none in a chart */
} qkv_panel_data;

struct qkv_grid {
    int32_t rows;
    int32_t cols;
    qkv_panel_data *panels; /* rows x cols */
    int is_chart;           /* NaN stands for no value, and labels read from left to right */
    double aspect;          /* of a chart's cells, width by height; 0: square */
    /* Names of bands in the colour range, the lowest first; a value is the number of its band and a
     * part of one. Borrowed; NULL: values are numbers. */
    const char *const *bands;
    int32_t n_bands;
};

/* Labels that are mostly words: tokens, names; others are numbers, which may be thinned out. */
int qkv_labels_are_words(char *const *labels, int32_t n);
/* Texts for the cells of a panel that is there; copied. */
int qkv_grid_set_texts(qkv_grid *grid, int32_t row, int32_t col, const char *const *texts,
                       qkv_error *err);

static inline const qkv_panel_data *qkv_grid_panel(const qkv_grid *grid, int32_t row, int32_t col) {
    return &grid->panels[(size_t)row * (size_t)grid->cols + (size_t)col];
}

static inline int qkv_panel_has_mask(const qkv_panel_data *panel) {
    return panel->causal || panel->window != 0;
}

/* Whether the mask took a cell away. A value other than 0 is there nevertheless: the caller put it
 * there. */
static inline int qkv_cell_is_masked(const qkv_panel_data *panel, int32_t row, int32_t col) {
    const int64_t back = row - ((int64_t)panel->first_col + col - panel->extra_cols);
    if (col < panel->extra_cols) return 0;
    if (panel->window < 0 && row - back < qkv_first_key(panel->window, row)) return 1;
    if (panel->window > 0 && (back >= panel->window || -back >= panel->window)) return 1;
    return panel->causal && back < 0;
}

#endif
