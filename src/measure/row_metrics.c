/*
 * Metrics of one pattern, row by row. Most are means: sums[0] is the sum and sums[1] the number of
 * rows in it.
 */
#include <math.h>
#include <stdlib.h>

#include "measure/metric.h"

static void add_to_mean(double *sums, double value) {
    sums[0] += value;
    sums[1] += 1;
}

/* A[i][j], also of keys beyond those that were computed. */
static double weight(const qkv_row *row, int64_t key) {
    return key >= 0 && key < row->n_keys ? (double)row->weights[key] : 0;
}

/* Sum of the weights of keys [first, end), as far as there are any. */
static double sum_keys(const qkv_row *row, int64_t first, int64_t end) {
    double sum = 0;
    if (first < 0) first = 0;
    if (end > row->n_keys) end = row->n_keys;
    for (int64_t j = first; j < end; j++) sum += (double)row->weights[j];
    return sum;
}

/* ---- where the weight goes ---- */

static void row_sink(const qkv_row *row, double *sums) {
    int64_t key = (int64_t)row->parameters[0];
    if (row->query >= key) add_to_mean(sums, weight(row, key));
}

/* The threshold is not the key. */
static void row_first_key(const qkv_row *row, double *sums) {
    add_to_mean(sums, weight(row, 0));
}

static void row_first_column(const qkv_row *row, double *sums) {
    if (row->query >= 1) add_to_mean(sums, weight(row, 0));
}

static void row_diagonal(const qkv_row *row, double *sums) {
    if (row->query >= 1) add_to_mean(sums, weight(row, row->query));
}

static void row_previous(const qkv_row *row, double *sums) {
    if (row->query >= 1) add_to_mean(sums, weight(row, row->query - 1));
}

static void row_previous_tl(const qkv_row *row, double *sums) {
    sums[0] += weight(row, row->query - 1);
    sums[1] += sum_keys(row, 0, row->n_keys);
}

static void row_near_diagonal(const qkv_row *row, double *sums) {
    int64_t i = row->query;
    if (i >= 1) add_to_mean(sums, sum_keys(row, i - 2, i) + sum_keys(row, i + 1, i + 3));
}

static void row_far(const qkv_row *row, double *sums) {
    int64_t i = row->query;
    if (i >= 3) add_to_mean(sums, sum_keys(row, 1, i - 2) + sum_keys(row, i + 3, row->n_keys));
}

static void row_upper(const qkv_row *row, double *sums) {
    add_to_mean(sums, sum_keys(row, row->query + 1, row->n_keys));
}

static void row_distance(const qkv_row *row, double *sums) {
    double sum = 0;
    for (int64_t j = 0; j < row->n_keys; j++)
        sum += (double)row->weights[j] * (double)llabs((long long)(row->query - j));
    add_to_mean(sums, sum);
}

/* Squares off the diagonal: enough where nothing lies above it. */
static void row_symmetry(const qkv_row *row, double *sums) {
    for (int64_t j = 0; j < row->n_keys; j++) {
        double a = row->weights[j];
        if (j != row->query) sums[0] += a * a;
    }
}

/* ---- how it is spread ---- */

double qkv_row_entropy(const qkv_row *row) {
    double sum = 0;
    for (int64_t j = 0; j < row->n_keys; j++) {
        double a = row->weights[j];
        if (a > 0) sum -= a * log(a);
    }
    return sum;
}

static void row_entropy(const qkv_row *row, double *sums) {
    if (row->query >= 1) add_to_mean(sums, row->entropy);
}

static void row_entropy_norm(const qkv_row *row, double *sums) {
    int64_t seen = row->end - row->first;
    if (row->query >= 1 && seen > 1) add_to_mean(sums, row->entropy / log((double)seen));
}

static void row_support(const qkv_row *row, double *sums) {
    if (row->query >= 1) add_to_mean(sums, exp(row->entropy));
}

int qkv_metric_reads_entropy(qkv_metric id) {
    return id == QKV_METRIC_ENTROPY || id == QKV_METRIC_ENTROPY_NORM || id == QKV_METRIC_SUPPORT;
}

/* ---- repeated tokens ---- */

/* Weight on the keys that come `shift` after an earlier occurrence of the query's own token. */
static void add_repeated(const qkv_row *row, int64_t shift, double *sums) {
    for (int64_t j = 0; j < row->n_keys; j++) {
        int64_t earlier = j - shift;
        sums[1] += (double)row->weights[j];
        if (row->tokens && earlier >= 0 && earlier < row->query &&
            row->tokens[earlier] == row->tokens[row->query])
            sums[0] += (double)row->weights[j];
    }
    if (!row->tokens) sums[0] = NAN;
}

static void row_induction(const qkv_row *row, double *sums) {
    add_repeated(row, 1, sums);
}

static void row_duplicate(const qkv_row *row, double *sums) {
    add_repeated(row, 0, sums);
}

/* ---- values ---- */

static double value_ratio(const double *sums, const double *parameters) {
    (void)parameters;
    return sums[1] > 0 ? sums[0] / sums[1] : (double)NAN;
}

static double value_above(const double *sums, const double *parameters) {
    return sums[1] > 0 ? sums[0] / sums[1] > parameters[0] : (double)NAN;
}

static double value_one_minus(const double *sums, const double *parameters) {
    return 1 - value_ratio(sums, parameters);
}

static double value_first(const double *sums, const double *parameters) {
    (void)parameters;
    return sums[0];
}

/* Nothing above the diagonal: ‖A−Aᵀ‖ is √2 ‖A‖. */
static double value_symmetry(const double *sums, const double *parameters) {
    (void)parameters;
    return sums[0] > 0 ? 1 - 1 / sqrt(2) : (double)NAN;
}

typedef struct functions {
    void (*add)(const qkv_row *row, double *sums);
    double (*value)(const double *sums, const double *parameters);
} functions;

static const functions of_rows[QKV_METRIC_COUNT] = {
    [QKV_METRIC_SINK] = {row_sink, value_ratio},
    [QKV_METRIC_SINK_RATE] = {row_first_key, value_above},
    [QKV_METRIC_FIRST_COLUMN] = {row_first_column, value_ratio},
    [QKV_METRIC_DIAGONAL] = {row_diagonal, value_ratio},
    [QKV_METRIC_PREVIOUS] = {row_previous, value_ratio},
    [QKV_METRIC_PREVIOUS_TL] = {row_previous_tl, value_ratio},
    [QKV_METRIC_NEAR_DIAGONAL] = {row_near_diagonal, value_ratio},
    [QKV_METRIC_FAR] = {row_far, value_ratio},
    [QKV_METRIC_UPPER] = {row_upper, value_ratio},
    [QKV_METRIC_SYMMETRY] = {row_symmetry, value_symmetry},
    [QKV_METRIC_ENTROPY] = {row_entropy, value_ratio},
    [QKV_METRIC_ENTROPY_NORM] = {row_entropy_norm, value_ratio},
    [QKV_METRIC_SUPPORT] = {row_support, value_ratio},
    [QKV_METRIC_DISTANCE] = {row_distance, value_ratio},
    [QKV_METRIC_INDUCTION] = {row_induction, value_ratio},
    [QKV_METRIC_DUPLICATE] = {row_duplicate, value_ratio},
    [QKV_METRIC_UNIFORMITY] = {qkv_row_uniformity, value_one_minus},
    [QKV_METRIC_TV] = {qkv_row_tv, value_ratio},
    [QKV_METRIC_JS] = {qkv_row_js, value_ratio},
    [QKV_METRIC_KL] = {qkv_row_kl, value_ratio},
    [QKV_METRIC_MAX_CHANGE] = {qkv_row_max_change, value_first},
    [QKV_METRIC_AWFT] = {row_first_key, value_above},
};

void qkv_metric_add_row(qkv_metric id, const qkv_row *row, double sums[QKV_METRIC_SUMS]) {
    if (of_rows[id].add) of_rows[id].add(row, sums);
}

double qkv_metric_value(const qkv_chosen_metric *metric, const double sums[QKV_METRIC_SUMS]) {
    const functions *f = &of_rows[metric->id];
    return f->value ? f->value(sums, metric->parameters) : (double)NAN;
}
