/* Arithmetic on logits: rows of one number for each token, whose softmax is a distribution. */
#ifndef QKV_BASE_LOGITS_H
#define QKV_BASE_LOGITS_H

#include <stddef.h>

/* log Σ exp, of at least one number: what a logit is less to be the logarithm of a probability. */
double qkv_log_sum_exp(const float *logits, size_t n);

/* KL(p ‖ q) in nats of two rows, which come with their log Σ exp. */
double qkv_logits_kl(const float *p, double p_sum, const float *q, double q_sum, size_t n);

#endif
