/* Metrics that need a map as a whole. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "measure/metric.h"
#include "measure/spectrum.h"

double qkv_map_symmetry(const float *map, int64_t n_tokens) {
    double differences = 0, squares = 0;
    for (int64_t i = 0; i < n_tokens; i++) {
        for (int64_t j = 0; j < n_tokens; j++) {
            double a = map[i * n_tokens + j], d = a - (double)map[j * n_tokens + i];
            if (i == j) continue;
            differences += d * d;
            squares += a * a;
        }
    }
    return squares > 0 ? 1 - sqrt(differences) / (2 * sqrt(squares)) : (double)NAN;
}

/* The transpose has the same singular values, so row-major will do. */
int qkv_map_effective_rank(double *value, const float *map, int64_t n_tokens, qkv_error *err) {
    size_t n = (size_t)n_tokens;
    double *a = qkv_calloc(n * n, sizeof *a), *sigma = qkv_calloc(n, sizeof *sigma), sum = 0;
    double entropy = 0;
    int status = a && sigma ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; status == QKV_OK && i < n * n; i++) a[i] = map[i];
    if (status == QKV_OK) status = qkv_singular_values(sigma, a, (int)n, (int)n, err);
    for (size_t i = 0; status == QKV_OK && i < n; i++) sum += sigma[i];
    for (size_t i = 0; status == QKV_OK && i < n; i++) {
        double p = sigma[i] / sum;
        if (p > 0) entropy -= p * log(p);
    }
    *value = sum > 0 ? exp(entropy) : (double)NAN;
    free(a);
    free(sigma);
    return status;
}
