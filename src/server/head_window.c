#include "server/head_window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "run/run.h"

static int64_t cell_of(const qkv_head_window *w, int64_t offset) {
    return offset * w->cells / w->extent;
}

int qkv_head_window_open(qkv_head_window *w, qkv_error *err) {
    const int64_t height = w->r1 - w->r0, width = w->c1 - w->c0;
    w->extent = height > width ? height : width;
    w->cells = w->extent < w->side ? w->extent : w->side;
    w->rows = cell_of(w, height - 1) + 1;
    w->cols = cell_of(w, width - 1) + 1;
    for (int i = 0; i < 2; i++) {
        w->values[i] = qkv_calloc((size_t)(w->rows * w->cols), sizeof(float));
        if (!w->values[i]) return qkv_fail_memory(err);
        for (int64_t c = 0; c < w->rows * w->cols; c++) w->values[i][c] = -INFINITY;
    }
    return QKV_OK;
}

void qkv_head_window_release(qkv_head_window *w) {
    free(w->values[0]);
    free(w->values[1]);
    *w = (qkv_head_window){0};
}

/* Keys that come after those of the row have no weight. */
static void take_row(const qkv_head_window *w, float *cells, const float *row, int64_t n_keys) {
    for (int64_t key = w->c0; key < w->c1; key++) {
        float *cell = &cells[cell_of(w, key - w->c0)];
        const float weight = key < n_keys ? row[key] : 0;
        if (weight > *cell) *cell = weight;
    }
}

void qkv_head_window_look(void *user, const qkv_rows *rows) {
    qkv_head_window *w = user;
    if (rows->variant > 1) return;
    if (rows->variant == 1) w->arrived = 1;
    for (int64_t r = 0; r < rows->n_rows; r++) {
        const int64_t query = rows->first_row + r;
        if (query < w->r0 || query >= w->r1) continue;
        take_row(w, w->values[rows->variant] + cell_of(w, query - w->r0) * w->cols,
                 rows->data + r * rows->n_keys, rows->n_keys);
    }
}

void qkv_head_window_finish(qkv_head_window *w) {
    if (w->arrived) return;
    memcpy(w->values[1], w->values[0], (size_t)(w->rows * w->cols) * sizeof(float));
}
