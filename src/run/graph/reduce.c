#include "run/graph/reduce.h"

#include <math.h>

#define REDUCTION_ENTRY(id, name, what) {name, what},
static const struct {
    const char *name, *what;
} reductions[QKV_REDUCTION_COUNT] = {QKV_REDUCTION_LIST(REDUCTION_ENTRY)};
#undef REDUCTION_ENTRY

const char *qkv_reduction_name(qkv_reduction kind) {
    return (unsigned)kind < QKV_REDUCTION_COUNT ? reductions[kind].name : NULL;
}

const char *qkv_reduction_description(qkv_reduction kind) {
    return (unsigned)kind < QKV_REDUCTION_COUNT ? reductions[kind].what : NULL;
}

int qkv_reduction_dims(qkv_reduction kind) {
    return kind == QKV_REDUCTION_MEAN || kind == QKV_REDUCTION_MAX ? 2 : 1;
}

int64_t qkv_reduction_side(int64_t side, int64_t n_tokens) {
    return side < n_tokens ? side : n_tokens;
}

int64_t qkv_reduction_size(qkv_reduction kind, int64_t side, int64_t n_tokens) {
    if (qkv_reduction_dims(kind) == 1) return n_tokens;
    side = qkv_reduction_side(side, n_tokens);
    return side * side;
}

/* The cell of a pooled axis that position i falls into. */
static int64_t cell_of(int64_t i, int64_t side, int64_t n_tokens) {
    return i * side / n_tokens;
}

void qkv_reduce_start(qkv_reduction kind, int64_t side, int64_t n_tokens, double *out) {
    const double first = kind == QKV_REDUCTION_MAX ? -INFINITY : 0;
    const int64_t n = qkv_reduction_size(kind, side, n_tokens);
    for (int64_t i = 0; i < n; i++) out[i] = first;
}

/* NaN stays, for those who look for it. */
static void take_larger(double *cell, double value) {
    if (!(value <= *cell) && !isnan(*cell)) *cell = value;
}

static void pool_row(qkv_reduction kind, int64_t side, int64_t n_tokens, const float *row,
                     int64_t keys, double *out) {
    for (int64_t j = 0; j < keys; j++) {
        double *cell = &out[cell_of(j, side, n_tokens)];
        if (kind == QKV_REDUCTION_MEAN)
            *cell += row[j];
        else
            take_larger(cell, row[j]);
    }
    if (kind != QKV_REDUCTION_MAX || keys == n_tokens) return;
    for (int64_t c = cell_of(keys, side, n_tokens); c < side; c++) take_larger(&out[c], 0);
}

void qkv_reduce_rows(qkv_reduction kind, int64_t side, int64_t n_tokens, const float *rows,
                     int64_t first_row, int64_t n_rows, int64_t keys, double *out) {
    side = qkv_reduction_side(side, n_tokens);
    for (int64_t r = 0; r < n_rows; r++) {
        const float *row = rows + r * keys;
        int64_t i = first_row + r;
        switch (kind) {
        case QKV_REDUCTION_FIRST:
            out[i] = row[0];
            break;
        case QKV_REDUCTION_SINK:
            out[i] = 1;
            for (int64_t j = 0; j < keys; j++) out[i] -= row[j];
            break;
        case QKV_REDUCTION_COLUMNS:
            for (int64_t j = 0; j < keys; j++) out[j] += row[j];
            break;
        case QKV_REDUCTION_DIAGONALS:
            for (int64_t j = 0; j < keys && j <= i; j++) out[i - j] += row[j];
            break;
        default:
            pool_row(kind, side, n_tokens, row, keys, out + cell_of(i, side, n_tokens) * side);
        }
    }
}

/* How many positions fall into a cell of a pooled axis. */
static int64_t cell_width(int64_t cell, int64_t side, int64_t n_tokens) {
    int64_t first = (cell * n_tokens + side - 1) / side;
    int64_t end = ((cell + 1) * n_tokens + side - 1) / side;
    return end - first;
}

void qkv_reduce_finish(qkv_reduction kind, int64_t side, int64_t n_tokens, double *out) {
    side = qkv_reduction_side(side, n_tokens);
    if (kind == QKV_REDUCTION_DIAGONALS) {
        for (int64_t o = 0; o < n_tokens; o++) out[o] /= (double)(n_tokens - o);
    } else if (kind == QKV_REDUCTION_MEAN) {
        for (int64_t r = 0; r < side; r++) {
            for (int64_t c = 0; c < side; c++)
                out[r * side + c] /=
                    (double)(cell_width(r, side, n_tokens) * cell_width(c, side, n_tokens));
        }
    }
}
