/* See reduced.h. Every cell walks over the whole map that it stands for. */
#include "support/reduced.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Where cell `cell` of `side` begins on an axis of n: the first i where floor(i side/n) is cell. */
static int first_of(int cell, int side, int n) {
    return (cell * n + side - 1) / side;
}

static double pooled(const float *map, int n, qkv_reduction kind, int side, int row, int column) {
    const int top = first_of(row, side, n), bottom = first_of(row + 1, side, n);
    const int left = first_of(column, side, n), right = first_of(column + 1, side, n);
    double sum = 0, largest = -INFINITY;
    for (int i = top; i < bottom; i++)
        for (int j = left; j < right; j++) {
            const double weight = (double)map[(size_t)i * (size_t)n + (size_t)j];
            sum += weight;
            largest = fmax(largest, weight);
        }
    return kind == QKV_REDUCTION_MAX ? largest : sum / ((bottom - top) * (right - left));
}

double reduced_cell(const float *map, int n, qkv_reduction kind, int side, int row, int column) {
    double sum = 0;
    switch (kind) {
    case QKV_REDUCTION_FIRST:
        return (double)map[(size_t)column * (size_t)n];
    case QKV_REDUCTION_SINK:
        for (int j = 0; j < n; j++) sum += (double)map[(size_t)column * (size_t)n + (size_t)j];
        return 1 - sum;
    case QKV_REDUCTION_COLUMNS:
        for (int i = 0; i < n; i++) sum += (double)map[(size_t)i * (size_t)n + (size_t)column];
        return sum;
    case QKV_REDUCTION_DIAGONALS:
        for (int i = column; i < n; i++)
            sum += (double)map[(size_t)i * (size_t)n + (size_t)(i - column)];
        return sum / (n - column);
    default:
        return pooled(map, n, kind, side, row, column);
    }
}

static int position_of(const qkv_tensor *map, int32_t head) {
    for (int i = 0; i < map->n_heads; i++)
        if (map->heads[i] == head) return i;
    fail_msg("head %d is not in the map", (int)head);
    return 0;
}

void expect_reduced(const qkv_result *result, size_t variant, int32_t layer, const qkv_tensor *map,
                    qkv_reduction kind, int side) {
    qkv_tensor t = QKV_TENSOR_INIT;
    const int n = (int)map->shape[1];
    const int two = kind == QKV_REDUCTION_MEAN || kind == QKV_REDUCTION_MAX;
    if (!qkv_result_get_reduced(result, variant, kind, layer, &t))
        fail_msg("variant %zu has no '%s'", variant, qkv_reduction_name(kind));
    if (side > n) side = n;
    const int columns = two ? side : n, rows = two ? side : 1;
    assert_int_equal(t.reduction, kind);
    assert_int_equal(t.head_kind, 'h');
    assert_int_equal(t.n_dims, two ? 3 : 2);
    assert_int_equal(t.shape[0], t.n_heads);
    assert_int_equal(t.shape[1], columns);
    if (two) assert_int_equal(t.shape[2], columns);
    const float *value = t.data;
    for (int h = 0; h < t.n_heads; h++) {
        const float *whole =
            map->data + (size_t)position_of(map, t.heads[h]) * (size_t)n * (size_t)n;
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < columns; c++, value++) {
                const double expected = reduced_cell(whole, n, kind, side, r, c);
                if (fabs((double)*value - expected) > 1e-4 * fabs(expected) + 1e-6)
                    fail_msg("variant %zu, %s, head %d, cell %d,%d: %g, not %g", variant,
                             qkv_reduction_name(kind), (int)t.heads[h], r, c, (double)*value,
                             expected);
            }
    }
}
