#include "measure/packed_matrix.h"

#include <stdlib.h>

#include "base/forked.h"
#include "base/memory.h"
#include "kernel/product.h"

/* Rows that a thread takes at a time: few enough for small products to be shared. */
#define CHUNK_ROWS 24

static int allocate(qkv_packed_matrix *out, int64_t width, int64_t columns, qkv_error *err) {
    *out = (qkv_packed_matrix){.width = width, .columns = columns};
    out->data = qkv_calloc((size_t)qkv_packed_size(width, columns), sizeof *out->data);
    return out->data ? QKV_OK : qkv_fail_memory(err);
}

int qkv_packed_from_rows(qkv_packed_matrix *out, const float *x, int64_t width, int64_t columns,
                         int n_threads, qkv_error *err) {
    int status = allocate(out, width, columns, err);
    if (status != QKV_OK) return status;
#pragma omp parallel for if (!qkv_is_forked()) num_threads(n_threads) schedule(static)
    for (int64_t part = 0; part < qkv_packed_parts(columns); part++)
        qkv_pack_rows(out->data, x, columns, width, columns, part);
    return QKV_OK;
}

int qkv_packed_from_columns(qkv_packed_matrix *out, const float *x, int64_t width, int64_t columns,
                            int n_threads, qkv_error *err) {
    /* Packing only reads. */
    const qkv_columns from = {.data = (float *)x, .stride = width, .repeat = 1, .n = columns};
    int status = allocate(out, width, columns, err);
    if (status != QKV_OK) return status;
#pragma omp parallel for if (!qkv_is_forked()) num_threads(n_threads) schedule(static)
    for (int64_t part = 0; part < qkv_packed_parts(columns); part++)
        qkv_pack(out->data, &from, width, part);
    return QKV_OK;
}

void qkv_packed_release(qkv_packed_matrix *matrix) {
    free(matrix->data);
    *matrix = (qkv_packed_matrix){0};
}

void qkv_packed_multiply(const qkv_packed_matrix *b, const float *a, int64_t rows, float *out,
                         int n_threads) {
#pragma omp parallel for if (!qkv_is_forked()) num_threads(n_threads) schedule(dynamic)
    for (int64_t first = 0; first < rows; first += CHUNK_ROWS) {
        const qkv_row_product product = {
            .a = a + first * b->width,
            .a_stride = b->width,
            .packed = b->data,
            .packed_width = b->width,
            .packed_columns = b->columns,
            .out = out + first * b->columns,
            .out_stride = b->columns,
            .rows = rows - first < CHUNK_ROWS ? rows - first : CHUNK_ROWS,
            .columns = b->columns,
            .width = b->width,
        };
        qkv_multiply_rows(&product);
    }
}
