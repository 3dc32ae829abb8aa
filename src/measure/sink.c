/*
 * How much of a head's attention one key draws.
 *
 * Sums run in double: a mean over thousands of float weights keeps its last digits.
 */
#include "qkv/measure.h"

static double column_mean(const float *pattern, int64_t n_tokens, int64_t key, int64_t first) {
    double sum = 0;
    for (int64_t i = first; i < n_tokens; i++) sum += pattern[i * n_tokens + key];
    return sum / (double)(n_tokens - first);
}

double qkv_measure_sink(const float *pattern, int64_t n_tokens, int64_t key) {
    if (!pattern || key < 0 || key >= n_tokens) return 0;
    return column_mean(pattern, n_tokens, key, key);
}

double qkv_measure_first_column(const float *pattern, int64_t n_tokens) {
    return pattern && n_tokens > 1 ? column_mean(pattern, n_tokens, 0, 1) : 1;
}
