/*
 * Numbers that describe an attention pattern. Formulas are those of docs/metrics.md; A is one
 * head's T x T matrix after the softmax, rows are queries.
 */
#ifndef QKV_MEASURE_H
#define QKV_MEASURE_H

#include <stdint.h>

#include "qkv/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sink (alpha_k): mean over queries i >= k of A[i][k]. */
QKV_API double qkv_measure_sink(const float *pattern, int64_t n_tokens, int64_t key);

/* First-column mass: mean over queries i >= 1 of A[i][0]; 1 for a single token. */
QKV_API double qkv_measure_first_column(const float *pattern, int64_t n_tokens);

#ifdef __cplusplus
}
#endif

#endif
