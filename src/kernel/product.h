/*
 * Products of matrices. One side is packed before, so that all products that read it share that; the
 * other is read as it lies in memory.
 *
 * Weights, in any type that ggml can convert, are converted in tiles that stay in the cache and
 * multiplied at once: no matrix exists in F32 as a whole.
 *
 * Every sum is taken in one order: k ascending within pieces of QKV_PIECE terms, then piece by
 * piece. The lanes of a vector are columns, and no column sees another. So a result does not depend,
 * to the last bit, on how many rows and columns there are, on the number of threads, or on the type
 * that the same values are stored in. Terms of 0 at the end change nothing. Few columns have a faster
 * product with another order of sums: kernel/dot.h.
 */
#ifndef QKV_KERNEL_PRODUCT_H
#define QKV_KERNEL_PRODUCT_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/convert.h"

/* Terms that are added to each other before they join the sum. Blocks of all types fit into it. */
#define QKV_PIECE ((int64_t)256)

/* ---- packing ---- */

/* The columns of a matrix in memory: column t begins at data + place · stride, where place is t, or
 * index[t] / repeat. */
typedef struct qkv_columns {
    float *data;
    int64_t stride;
    const int32_t *index; /* NULL: one after the other */
    int32_t repeat;
    int64_t n;
} qkv_columns;

float *qkv_column_at(const qkv_columns *x, int64_t t);

/* Floats that `columns` columns of `width` values take when packed. */
int64_t qkv_packed_size(int64_t width, int64_t columns);
/* How many parts the packing comes in, for threads to share. */
int64_t qkv_packed_parts(int64_t columns);
void qkv_pack(float *packed, const qkv_columns *x, int64_t width, int64_t part);
/* The same of a matrix whose rows lie one after the other: value k of all columns at x + k · stride. */
void qkv_pack_rows(float *packed, const float *x, int64_t stride, int64_t width, int64_t columns,
                   int64_t part);

/* Writes one more column, number `column` of `columns`, of a matrix that is packed column by column:
 * `width` values, one after the other. Memory that holds no column yet must be 0. */
void qkv_pack_column(float *packed, int64_t width, int64_t columns, int64_t column, const float *x);
/* And value k of all columns, of a matrix that is packed row by row. */
void qkv_pack_row(float *packed, int64_t width, int64_t columns, int64_t k, const float *x);
/* Takes away the first `n` columns or rows, a multiple of QKV_PIECE: what is after them moves up. */
void qkv_packed_drop_columns(float *packed, int64_t width, int64_t columns, int64_t n);
void qkv_packed_drop_rows(float *packed, int64_t width, int64_t columns, int64_t n);

/* ---- weights with activations: out[t][n] = sum over k of w[n][k] · x[t][k], x packed ---- */

/* A matrix of weights. */
typedef struct qkv_weights_view {
    const char *data;
    size_t row_bytes;
    size_t block_bytes; /* for `block` values */
    int64_t block;
    int64_t rows, width;
    enum ggml_type type;
    qkv_convert_fn convert;
} qkv_weights_view;

/* One of a tensor's matrices: that of an expert, or number 0. */
qkv_weights_view qkv_weights_matrix(const struct ggml_tensor *weights, int64_t number);

/* Floats of scratch memory that a thread needs. */
size_t qkv_product_scratch(void);
/* How many rows a thread should take at a time. */
int64_t qkv_product_rows(int64_t rows, int n_threads);
/* Rows [first, end) of the product with packed columns. */
void qkv_product(const qkv_weights_view *w, int64_t first, int64_t end, const float *packed,
                 const qkv_columns *out, float *scratch);

/* ---- activations with activations: out[r][c] = sum over k of a[r][k] · b[k][c], b packed ---- */

typedef struct qkv_row_product {
    const float *a; /* rows a_stride apart */
    int64_t a_stride;
    const float *packed; /* may have more terms and columns than the product */
    int64_t packed_width, packed_columns;
    int64_t first_column; /* a multiple of QKV_PIECE: where the product's columns begin in there */
    float *out;           /* rows out_stride apart */
    int64_t out_stride;
    int64_t rows, columns, width;
} qkv_row_product;

void qkv_multiply_rows(const qkv_row_product *p);

/*
 * Products of weights with a few columns: one more token of a text, and its variants.
 *
 * kernel/product.h has columns as lanes, and few of them leave lanes empty. Here the lanes run along a
 * row of weights, as they lie in memory, so that a product takes little more than reading them.
 *
 * The sum over k is taken in another order than there, and so differs in the last bits: QKV_DOT_SUMS
 * partial sums, number k modulo QKV_DOT_SUMS, each with k ascending; then the upper half of them is
 * added to the lower half until one is left. That order is the same for every processor, number of
 * threads and type of weights, and no column sees another.
 */

#define QKV_DOT_SUMS 32

/* out[t][n] = sum over k of w[n][k] · x[t][k], for rows n in [first, end). `scratch` has
 * qkv_product_scratch() floats. */
void qkv_dot_product(const qkv_weights_view *w, int64_t first, int64_t end, const qkv_columns *x,
                     const qkv_columns *out, float *scratch);

#endif
