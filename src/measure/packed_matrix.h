/*
 * Products of plain F32 matrices, by the kernels of kernel/product.h and with threads: no bit depends
 * on how many there are.
 */
#ifndef QKV_MEASURE_PACKED_MATRIX_H
#define QKV_MEASURE_PACKED_MATRIX_H

#include <stdint.h>

#include "base/fail.h"

/* The right side of products, width x columns. */
typedef struct qkv_packed_matrix {
    float *data;
    int64_t width, columns;
} qkv_packed_matrix;

/* Of a matrix whose rows, or whose columns, lie one after the other. Released also after a failure. */
int qkv_packed_from_rows(qkv_packed_matrix *out, const float *x, int64_t width, int64_t columns,
                         int n_threads, qkv_error *err);
int qkv_packed_from_columns(qkv_packed_matrix *out, const float *x, int64_t width, int64_t columns,
                            int n_threads, qkv_error *err);
void qkv_packed_release(qkv_packed_matrix *matrix);

/* out [rows][columns] = a [rows][width] · b. */
void qkv_packed_multiply(const qkv_packed_matrix *b, const float *a, int64_t rows, float *out,
                         int n_threads);

#endif
