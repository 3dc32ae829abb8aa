#include "base/logits.h"

#include <math.h>

qkv_log_sum qkv_log_sum_exp(const float *logits, size_t n) {
    float largest = logits[0];
    double sum = 0;
    for (size_t i = 1; i < n; i++) largest = logits[i] > largest ? logits[i] : largest;
    for (size_t i = 0; i < n; i++) sum += exp((double)logits[i] - (double)largest);
    return (qkv_log_sum){largest, log(fmax(sum, 1))}; /* the largest adds 1 */
}

double qkv_logits_kl(const float *p, qkv_log_sum p_sum, const float *q, qkv_log_sum q_sum,
                     size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double log_p = qkv_logit_log_p(p[i], p_sum), log_q = qkv_logit_log_p(q[i], q_sum);
        sum += exp(log_p) * (log_p - log_q);
    }
    return fmax(sum, 0);
}

int64_t qkv_logits_rank(const float *row, size_t n, int32_t token) {
    int64_t before = 0;
    for (size_t i = 0; i < n; i++)
        before += row[i] > row[token] || (row[i] == row[token] && (int32_t)i < token);
    return before + 1;
}
