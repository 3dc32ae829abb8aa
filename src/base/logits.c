#include "base/logits.h"

#include <math.h>

double qkv_log_sum_exp(const float *logits, size_t n) {
    float largest = logits[0];
    double sum = 0;
    for (size_t i = 1; i < n; i++) largest = logits[i] > largest ? logits[i] : largest;
    for (size_t i = 0; i < n; i++) sum += exp((double)logits[i] - (double)largest);
    return (double)largest + log(fmax(sum, 1)); /* the largest adds 1 */
}

double qkv_logits_kl(const float *p, double p_sum, const float *q, double q_sum, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double log_p = (double)p[i] - p_sum, log_q = (double)q[i] - q_sum;
        sum += exp(log_p) * (log_p - log_q);
    }
    return fmax(sum, 0);
}
