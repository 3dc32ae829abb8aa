/*
 * What a qkv_grid holds: copies of everything its caller handed over. Only src/draw sees inside.
 */
#ifndef QKV_DRAW_GRID_DATA_H
#define QKV_DRAW_GRID_DATA_H

#include "qkv/grid.h"

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
} qkv_panel_data;

struct qkv_grid {
    int32_t rows;
    int32_t cols;
    qkv_panel_data *panels; /* rows x cols */
    int is_chart;           /* NaN stands for no value, and labels read from left to right */
    double aspect;          /* of a chart's cells, width by height; 0: square */
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
    return panel->causal || panel->window > 0;
}

/* Whether the mask took a cell away. A value other than 0 is there nevertheless: somebody put it
 * there. */
static inline int qkv_cell_is_masked(const qkv_panel_data *panel, int32_t row, int32_t col) {
    const int64_t behind = row - ((int64_t)panel->first_col + col - panel->extra_cols);
    if (col < panel->extra_cols) return 0;
    if (panel->window > 0 && (behind >= panel->window || -behind >= panel->window)) return 1;
    return panel->causal && behind < 0;
}

#endif
