/* Grids to draw and a directory to draw into. See figures.h. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "support/figures.h"
#include "support/scratch.h"

/* fontconfig loses a few hundred bytes while it reads its configuration; the leak checker, which
 * asks this function, must not count them as ours. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libfontconfig\n";
}

char *slurp(const char *path, size_t *size) {
    char *data = NULL;
    qkv_error err;
    assert_int_equal(qkv_read_file(&data, size, path, 1 << 28, &err), QKV_OK);
    return data;
}

int remove_scratch(void **state) {
    (void)state;
    scratch_remove();
    return 0;
}

static const char *const TOKENS[] = {"<|bos|>", "The",   " river", " runs", " past", " the",
                                     " old",    " mill", ",",      " and",  " on",   "."};

/* A causal pattern: rows sum to 1, the first column is favoured by `sink`. */
float *causal(int32_t n, double sink) {
    float *values = calloc((size_t)n * (size_t)n, sizeof *values);
    assert_non_null(values);
    for (int32_t i = 0; i < n; i++) {
        double sum = 0;
        for (int32_t j = 0; j <= i; j++) {
            const double weight = exp((j == 0 ? sink : 0) + sin(3.7 * i + 1.3 * j));
            values[i * n + j] = (float)weight;
            sum += weight;
        }
        for (int32_t j = 0; j <= i; j++) values[i * n + j] /= (float)sum;
    }
    return values;
}

qkv_grid *make_grid(int32_t rows, int32_t cols) {
    qkv_grid *grid = NULL;
    qkv_error err;
    assert_int_equal(qkv_grid_new(&grid, rows, cols, &err), QKV_OK);
    return grid;
}

void set_panel(qkv_grid *grid, int32_t row, int32_t col, const qkv_panel *panel) {
    qkv_error err = {0};
    if (qkv_grid_set_panel(grid, row, col, panel, &err) != QKV_OK) fail_msg("%s", err.message);
}

/* Panels of n tokens (12 different ones, over and over); grow more of them in each grid row. */
qkv_grid *token_grid(int32_t rows, int32_t cols, int32_t n, int32_t grow, int labels) {
    static const char *const parts[] = {"Query", "Key", "Value"};
    qkv_grid *grid = make_grid(rows, cols);
    for (int32_t r = 0; r < rows; r++) {
        const int32_t size = n + r * grow;
        const char **names = calloc((size_t)size, sizeof *names);
        assert_non_null(names);
        for (int32_t i = 0; i < size; i++) names[i] = TOKENS[i % 12];
        for (int32_t c = 0; c < cols; c++) {
            char title[64];
            snprintf(title, sizeof title, "Modifying *%s* with ε = 1e-%d", parts[r % 3], c);
            float *values = causal(size, 2 - c);
            const qkv_panel panel = {.size = sizeof(qkv_panel),
                                     .values = values,
                                     .n_rows = size,
                                     .n_cols = size,
                                     .title = title,
                                     .row_labels = labels ? names : NULL,
                                     .col_labels = labels ? names : NULL};
            set_panel(grid, r, c, &panel);
            free(values);
        }
        free(names);
    }
    return grid;
}

qkv_grid_style plain_style(void) {
    qkv_grid_style style = QKV_GRID_STYLE_INIT;
    style.title = "The Attention Weight after Modifying Query, Key and Value";
    style.small_print = "layer 1, head 2 of a small model\nrow = query, column = key";
    return style;
}

void write_ok(const qkv_grid *grid, const qkv_grid_style *style, const char *path) {
    qkv_error err = {0};
    if (qkv_grid_write(grid, style, path, &err) != QKV_OK) fail_msg("%s", err.message);
}
