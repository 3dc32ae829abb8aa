/*
 * The grid: matrices with titles and labels, copied from the caller and checked as they come in.
 * It owns its copies and refuses values that are not finite, so that drawing never meets one; in the
 * grid of a heatmap chart, NaN stands for a cell without a value.
 */
#include "qkv/grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "draw/draw.h"
#include "draw/grid_data.h"

/* More panels than this on one page cannot be read, and sizes stay far from overflow. */
enum { MAX_SIDE = 1000 };

const char *qkv_scale_name(qkv_scale scale) {
    static const char *const names[] = {"linear", "log", "power"};
    return (unsigned)scale <= QKV_SCALE_POWER ? names[scale] : NULL;
}

const char *qkv_colormap_name(qkv_colormap colormap) {
    static const char *const names[] = {"auto", "coolwarm", "viridis", "cividis", "magma", "grey"};
    return (unsigned)colormap <= QKV_COLORMAP_GREY ? names[colormap] : NULL;
}

const char *qkv_masked_name(qkv_masked masked) {
    static const char *const names[] = {"auto", "zero", "white", "hatch"};
    return (unsigned)masked <= QKV_MASKED_HATCH ? names[masked] : NULL;
}

const char *qkv_pooling_name(qkv_pooling pooling) {
    static const char *const names[] = {"auto", "largest", "magnitude"};
    return (unsigned)pooling <= QKV_POOLING_MAGNITUDE ? names[pooling] : NULL;
}

int qkv_grid_new(qkv_grid **out, int32_t rows, int32_t cols, qkv_error *err) {
    if (!out) return qkv_fail(err, QKV_ERR_ARGUMENT, "qkv_grid_new: no place for the grid");
    *out = NULL;
    if (rows < 1 || cols < 1 || rows > MAX_SIDE || cols > MAX_SIDE) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "a grid of %d x %d panels: each side must be 1 to %d", rows, cols,
                        MAX_SIDE);
    }
    qkv_grid *grid = qkv_calloc(1, sizeof *grid);
    if (!grid) return qkv_fail_memory(err);
    grid->rows = rows;
    grid->cols = cols;
    grid->panels = qkv_calloc((size_t)rows * (size_t)cols, sizeof *grid->panels);
    if (!grid->panels) {
        free(grid);
        return qkv_fail_memory(err);
    }
    *out = grid;
    return QKV_OK;
}

static void free_labels(char **labels, int32_t n) {
    if (!labels) return;
    for (int32_t i = 0; i < n; i++) free(labels[i]);
    free(labels);
}

static void release_panel(qkv_panel_data *panel) {
    free_labels(panel->row_labels, panel->n_rows);
    free_labels(panel->col_labels, panel->n_cols);
    free_labels(panel->cell_texts, panel->n_rows * panel->n_cols);
    free(panel->title);
    free(panel->side);
    if (!panel->borrowed) free(panel->values);
    *panel = (qkv_panel_data){0};
}

void qkv_grid_free(qkv_grid *grid) {
    if (!grid) return;
    for (int32_t i = 0; i < grid->rows * grid->cols; i++) release_panel(&grid->panels[i]);
    free(grid->panels);
    free(grid);
}

/* A label that is NULL becomes "". Returns NULL when memory is short. */
static char **copy_labels(const char *const *labels, int32_t n) {
    char **copies = qkv_calloc((size_t)n, sizeof *copies);
    if (!copies) return NULL;
    for (int32_t i = 0; i < n; i++) {
        copies[i] = qkv_strdup(labels[i] ? labels[i] : "");
        if (!copies[i]) {
            free_labels(copies, n);
            return NULL;
        }
    }
    return copies;
}

static int is_number(const char *text) {
    return *text && text[strspn(text, "+-.,0123456789e%")] == '\0';
}

int qkv_labels_are_words(char *const *labels, int32_t n) {
    int32_t words = 0;
    for (int32_t i = 0; labels && i < n; i++) words += labels[i][0] && !is_number(labels[i]);
    return 2 * words > n;
}

int qkv_grid_set_texts(qkv_grid *grid, int32_t row, int32_t col, const char *const *texts,
                       qkv_error *err) {
    qkv_panel_data *panel = &grid->panels[(size_t)row * (size_t)grid->cols + (size_t)col];
    panel->cell_texts = copy_labels(texts, panel->n_rows * panel->n_cols);
    return panel->cell_texts ? QKV_OK : qkv_fail_memory(err);
}

static int check_values(const qkv_grid *grid, int32_t row, int32_t col, const qkv_panel *panel,
                        qkv_error *err) {
    for (int32_t i = 0; i < panel->n_rows; i++) {
        const float *values = panel->values + (size_t)i * (size_t)panel->n_cols;
        for (int32_t j = 0; j < panel->n_cols; j++) {
            if (isfinite(values[j]) || ((grid->is_chart || panel->has_gaps) && isnan(values[j])))
                continue;
            return qkv_fail(err, QKV_ERR_NUMERIC,
                            "panel (%d, %d): the value in row %d, column %d is %g and cannot be "
                            "drawn",
                            row, col, i, j, (double)values[j]);
        }
    }
    return QKV_OK;
}

static int check_panel(const qkv_grid *grid, int32_t row, int32_t col, const qkv_panel *panel,
                       qkv_error *err) {
    if (!grid || !panel) return qkv_fail(err, QKV_ERR_ARGUMENT, "no grid or no panel given");
    if (row < 0 || col < 0 || row >= grid->rows || col >= grid->cols) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "panel (%d, %d) is outside the grid of %d x %d panels", row, col,
                        grid->rows, grid->cols);
    }
    if (panel->n_rows < 1 || panel->n_cols < 1) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "panel (%d, %d): a matrix of %d x %d is empty", row,
                        col, panel->n_rows, panel->n_cols);
    }
    if (!panel->values) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "panel (%d, %d) has no values", row, col);
    }
    if (panel->first_col < 0) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "panel (%d, %d): first column %d is negative", row,
                        col, panel->first_col);
    }
    if ((panel->window < 0 && !panel->causal) || panel->extra_cols < 0 ||
        panel->extra_cols > panel->n_cols) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "panel (%d, %d): a window of %d and %d extra columns of %d cannot be", row,
                        col, panel->window, panel->extra_cols, panel->n_cols);
    }
    return check_values(grid, row, col, panel, err);
}

/* NaN where there is nothing to see. */
static void find_extremes(qkv_panel_data *panel) {
    panel->smallest = panel->largest = NAN;
    for (int32_t r = 0; r < panel->n_rows; r++) {
        const float *values = panel->values + (size_t)r * (size_t)panel->n_cols;
        for (int32_t c = 0; c < panel->n_cols; c++) {
            if (isnan(values[c])) continue;
            if (values[c] == 0 && qkv_cell_is_masked(panel, r, c)) continue;
            if (!(values[c] >= panel->smallest)) panel->smallest = values[c];
            if (!(values[c] <= panel->largest)) panel->largest = values[c];
        }
    }
}

/* Everything that is copied; 0 when memory is short. */
static int copy_panel(qkv_panel_data *copy, const qkv_panel *panel, int is_chart) {
    const size_t n = (size_t)panel->n_rows * (size_t)panel->n_cols;
    copy->n_rows = panel->n_rows;
    copy->n_cols = panel->n_cols;
    copy->first_col = panel->first_col;
    copy->causal = panel->causal;
    copy->window = panel->window;
    copy->extra_cols = panel->extra_cols;
    copy->borrowed = panel->borrowed;
    if (panel->borrowed) {
        copy->values = (float *)panel->values; /* never written to */
    } else {
        copy->values = qkv_calloc(n, sizeof *copy->values);
        if (!copy->values) return 0;
        memcpy(copy->values, panel->values, n * sizeof *copy->values);
    }
    find_extremes(copy);
    if (!is_chart &&
        !qkv_strong_lines_find(&copy->strong, copy->values, copy->n_rows, copy->n_cols))
        return 0;
    if (panel->title && !(copy->title = qkv_strdup(panel->title))) return 0;
    if (panel->side && !(copy->side = qkv_strdup(panel->side))) return 0;
    if (panel->row_labels && !(copy->row_labels = copy_labels(panel->row_labels, panel->n_rows))) {
        return 0;
    }
    if (panel->col_labels && !(copy->col_labels = copy_labels(panel->col_labels, panel->n_cols))) {
        return 0;
    }
    return 1;
}

int qkv_grid_set_panel(qkv_grid *grid, int32_t row, int32_t col, const qkv_panel *given,
                       qkv_error *err) {
    qkv_panel own = QKV_PANEL_INIT;
    const qkv_panel *const panel = given ? &own : NULL;
    int status = qkv_sized_read(&own, sizeof own, given, "qkv_panel", err);
    if (status == QKV_OK) status = check_panel(grid, row, col, panel, err);
    if (status != QKV_OK) return status;
    qkv_panel_data copy = {0};
    if (!copy_panel(&copy, panel, grid->is_chart)) {
        release_panel(&copy);
        return qkv_fail_memory(err);
    }
    qkv_panel_data *place = &grid->panels[(size_t)row * (size_t)grid->cols + (size_t)col];
    release_panel(place);
    *place = copy;
    return QKV_OK;
}
