/* Columns and diagonals of a map that hold much of its weight. */
#include "draw/grid_data.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

enum { FEW_CELLS = 32 }; /* nothing of such a map is drawn too small to be seen */

/* Which of n sums hold their share of all. */
static int choose(int32_t found[QKV_MOST_STRONG], const double *sums, int32_t n, int32_t first,
                  double all) {
    int n_found = 0;
    for (int32_t i = 0; i < n && n_found < QKV_MOST_STRONG; i++) {
        if (sums[i] >= QKV_STRONG_SHARE * all) found[n_found++] = first + i;
    }
    return n_found;
}

int qkv_strong_lines_find(qkv_strong_lines *found, const float *values, int32_t n_rows,
                          int32_t n_cols) {
    double all = 0;
    *found = (qkv_strong_lines){0};
    if (n_rows <= FEW_CELLS && n_cols <= FEW_CELLS) return 1;
    const int32_t n_diagonals = n_rows + n_cols - 1;
    double *cols = qkv_calloc((size_t)n_cols, sizeof *cols);
    double *diagonals = qkv_calloc((size_t)n_diagonals, sizeof *diagonals);
    for (int32_t r = 0; cols && diagonals && r < n_rows; r++) {
        const float *row = values + (size_t)r * (size_t)n_cols;
        double *diagonal = diagonals + n_cols - 1 + r;
        for (int32_t c = 0; c < n_cols; c++) {
            if (isnan(row[c])) continue;
            const double weight = fabs((double)row[c]);
            cols[c] += weight;
            diagonal[-c] += weight;
            all += weight;
        }
    }
    if (cols && diagonals && all > 0) {
        found->n_cols = choose(found->cols, cols, n_cols, 0, all);
        found->n_diagonals = choose(found->diagonals, diagonals, n_diagonals, 1 - n_cols, all);
    }
    const int made = cols && diagonals;
    free(cols);
    free(diagonals);
    return made;
}
