/* Arithmetic on logits: rows of one number for each token, whose softmax is a distribution. */
#ifndef QKV_BASE_LOGITS_H
#define QKV_BASE_LOGITS_H

#include <stddef.h>
#include <stdint.h>

/* log Σ exp of a row, as its largest logit and what the others add to it: their sum would lose the
 * second beside a very large first. */
typedef struct qkv_log_sum {
    double largest, rest;
} qkv_log_sum;

/* Of at least one number. */
qkv_log_sum qkv_log_sum_exp(const float *logits, size_t n);

/* The logarithm of the probability that a logit stands for. */
static inline double qkv_logit_log_p(float logit, qkv_log_sum sum) {
    return (double)logit - sum.largest - sum.rest;
}

/* KL(p ‖ q) in nats of two rows, which come with their log Σ exp. */
double qkv_logits_kl(const float *p, qkv_log_sum p_sum, const float *q, qkv_log_sum q_sum,
                     size_t n);

/* 1 for the most likely token; of equally likely ones the one with the lower id comes first. */
int64_t qkv_logits_rank(const float *row, size_t n, int32_t token);

#endif
