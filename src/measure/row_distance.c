/*
 * Distances between rows of weights: a variant's from the baseline's, and a row from the uniform
 * one. Where a row leaves weight outside the keys (models with attention sinks, edited patterns),
 * the rest counts as one more key, so that distances stay those of distributions.
 */
#include <math.h>

#include "measure/metric.h"

/* What the softmax's rounding leaves is a few 1e-7 whatever the number of keys, as its sum is of
 * double precision; a learned sink may leave little more. */
#define SMALLEST_REST 1e-6

static double rest_of(const float *weights, int64_t n) {
    double sum = 0;
    for (int64_t j = 0; j < n; j++) sum += (double)weights[j];
    return 1 - sum > SMALLEST_REST ? 1 - sum : 0;
}

void qkv_row_tv(const qkv_row *row, double *sums) {
    double sum = fabs(rest_of(row->baseline, row->n_keys) - rest_of(row->weights, row->n_keys));
    for (int64_t j = 0; j < row->n_keys; j++)
        sum += fabs((double)row->baseline[j] - (double)row->weights[j]);
    sums[0] += sum / 2;
    sums[1] += 1;
}

/* p ln(p/q), 0 where p is. */
static double kl_term(double p, double q) {
    return p > 0 ? p * log(p / q) : 0;
}

/* Both halves of a cell. */
static double js_term(double p, double q) {
    double m = (p + q) / 2;
    return (kl_term(p, m) + kl_term(q, m)) / 2;
}

void qkv_row_js(const qkv_row *row, double *sums) {
    double sum = js_term(rest_of(row->baseline, row->n_keys), rest_of(row->weights, row->n_keys));
    for (int64_t j = 0; j < row->n_keys; j++) sum += js_term(row->baseline[j], row->weights[j]);
    sums[0] += fmax(sum, 0); /* rows that sum to 1 only nearly */
    sums[1] += 1;
}

void qkv_row_kl(const qkv_row *row, double *sums) {
    double sum = kl_term(rest_of(row->baseline, row->n_keys), rest_of(row->weights, row->n_keys));
    for (int64_t j = 0; j < row->n_keys; j++) sum += kl_term(row->baseline[j], row->weights[j]);
    if (isinf(sum)) return; /* masked where the baseline is not */
    sums[0] += fmax(sum, 0);
    sums[1] += 1;
}

void qkv_row_max_change(const qkv_row *row, double *sums) {
    for (int64_t j = 0; j < row->n_keys; j++)
        sums[0] = fmax(sums[0], fabs((double)row->baseline[j] - (double)row->weights[j]));
}

void qkv_row_uniformity(const qkv_row *row, double *sums) {
    double share = 1 / (double)(row->end - row->first);
    double sum = rest_of(row->weights, row->n_keys);
    for (int64_t j = 0; j < row->n_keys; j++) {
        double u = j >= row->first && j < row->end ? share : 0;
        sum += fabs((double)row->weights[j] - u);
    }
    sums[0] += sum / 2;
    sums[1] += 1;
}
