/*
 * How far edits turn the space that the last hidden states of many prompts lie in.
 *
 * One column per prompt; the leading left singular vectors span the space.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "measure/metric_sums.h"
#include "measure/spectrum.h"

#define DEGREES (180 / 3.14159265358979323846)

int qkv_subspace_add(qkv_measure *measure, const qkv_metric_sums *totals, size_t width,
                     qkv_error *err) {
    size_t n = totals->n_variants;
    if (measure->n_hidden && (measure->n_variants != n || measure->width != width))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "subspace_angle needs the same variants for every prompt: %zu and %zu",
                        measure->n_variants, n);
    float *moved = realloc(measure->hidden, (measure->n_hidden + 1) * n * width * sizeof *moved);
    if (!moved) return qkv_fail_memory(err);
    measure->hidden = moved;
    measure->n_variants = n;
    measure->width = width;
    float *to = moved + measure->n_hidden++ * n * width;
    for (size_t v = 0; v < n; v++)
        memcpy(to + v * width, totals->hidden + (totals->has_hidden[v] ? v : 0) * width,
               width * sizeof *to);
    return QKV_OK;
}

static int leading_vectors(const qkv_measure *measure, size_t variant, int rank, double *vectors,
                           qkv_error *err) {
    size_t rows = measure->width, cols = measure->n_hidden;
    double *a = qkv_calloc(rows * cols, sizeof *a);
    if (!a) return qkv_fail_memory(err);
    for (size_t c = 0; c < cols; c++) {
        const float *x = measure->hidden + (c * measure->n_variants + variant) * rows;
        for (size_t r = 0; r < rows; r++) a[c * rows + r] = x[r];
    }
    int status = qkv_left_vectors(vectors, a, (int)rows, (int)cols, rank, err);
    free(a);
    return status;
}

int qkv_subspace_measure(const qkv_measure *measure, size_t variant, int rank, double *degrees,
                         qkv_error *err) {
    *degrees = NAN;
    if ((size_t)rank > measure->n_hidden || (size_t)rank > measure->width) return QKV_OK;
    size_t size = measure->width * (size_t)rank;
    double *base = qkv_calloc(size, sizeof *base), *edited = qkv_calloc(size, sizeof *edited);
    double angle = 0;
    int status = base && edited ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) status = leading_vectors(measure, 0, rank, base, err);
    if (status == QKV_OK) status = leading_vectors(measure, variant, rank, edited, err);
    if (status == QKV_OK && memcmp(base, edited, size * sizeof *base) != 0)
        status = qkv_subspace_angle(&angle, base, edited, (int)measure->width, rank, err);
    if (status == QKV_OK) *degrees = angle * DEGREES;
    free(base);
    free(edited);
    return status;
}
