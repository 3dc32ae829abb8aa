/*
 * States of the residual stream on their way to the vocabulary, through the model's own final norm,
 * output matrix, logit scale and cap.
 *
 * Of the last layer's resid_post the logits are the model's; of an earlier layer's they are what the
 * logit lens shows.
 *
 * What the final norm divides by depends on the whole state. Held at the value that it has for one
 * state x, the rest is linear, and a logit before the cap is
 *
 *     direction · x + offset
 *
 * so that parts whose sum is x have logits whose sum, with the offset, is that of x: direct logit
 * attribution.
 */
#ifndef QKV_RUN_UNEMBED_H
#define QKV_RUN_UNEMBED_H

#include "qkv/session.h"
#include <stddef.h>
#include <stdint.h>

/* `states` are n rows of n_embd numbers, `logits` has room for n rows of n_vocab. QKV_ERR_UNSUPPORTED for
 * a model without logits. Belongs to the session's thread. */
int qkv_unembed(qkv_session *session, const float *states, size_t n, float *logits, qkv_error *err);

/* The direction above, n_embd numbers, of one token at one state. The offset is what the biases of the
 * norm and of the output give. */
int qkv_unembed_direction(const qkv_model *model, const float *state, int32_t token,
                          double *direction, double *offset, qkv_error *err);

/* A logit as the model's cap leaves it: c tanh(x / c), or x where it has none. */
double qkv_unembed_cap(const qkv_model *model, double logit);

/* What the heads of a layer add to the residual stream, along a direction: parts has room for n_head
 * numbers, *bias is what the output projection's bias adds. z holds the n_head * head_dim values of one
 * token at the site z. A norm after attention divides by what it has for this z. Their sum is the
 * direction times attn_out. */
int qkv_unembed_heads(const qkv_model *model, int32_t layer, const float *z,
                      const double *direction, double *parts, double *bias, qkv_error *err);

#endif
