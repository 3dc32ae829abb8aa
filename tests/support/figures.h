/* What the tests of drawing share: grids of causal patterns, and files read back. */
#ifndef QKV_TESTS_SUPPORT_FIGURES_H
#define QKV_TESTS_SUPPORT_FIGURES_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/grid.h"

/* scratch_remove as the teardown of a group of tests. */
int remove_scratch(void **state);

/* A whole file, freed with free. */
char *slurp(const char *path, size_t *size);

/* A causal n x n pattern: rows sum to 1, the first column is favoured by `sink`. Freed with
 * free. */
float *causal(int32_t n, double sink);

qkv_grid *make_grid(int32_t rows, int32_t cols);
void set_panel(qkv_grid *grid, int32_t row, int32_t col, const qkv_panel *panel);

/* Panels of n tokens (12 different ones, over and over), `grow` more of them in each grid row; the
 * one in grid column c holds causal(size, 2 - c). */
qkv_grid *token_grid(int32_t rows, int32_t cols, int32_t n, int32_t grow, int labels);

/* The default with a title and small print. */
qkv_grid_style plain_style(void);

void write_ok(const qkv_grid *grid, const qkv_grid_style *style, const char *path);

#endif
