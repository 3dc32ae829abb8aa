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
#ifndef QKV_KERNEL_DOT_H
#define QKV_KERNEL_DOT_H

#include "kernel/product.h"

#define QKV_DOT_SUMS 32

/* out[t][n] = sum over k of w[n][k] · x[t][k], for rows n in [first, end). `scratch` has
 * qkv_product_scratch() floats. */
void qkv_dot_product(const qkv_weights_view *w, int64_t first, int64_t end, const qkv_columns *x,
                     const qkv_columns *out, float *scratch);

#endif
