/*
 * What a head writes: a value on its way through the head's part of the output projection, and on to
 * the vocabulary.
 *
 * With W_h the head's d columns of the output projection, a head adds W_h z to the residual stream,
 * z being the sum of its values by their weights. So W_h v is what the value v adds for a weight of 1,
 * and what the vocabulary makes of that says what the head would write:
 *
 *     logits = s · U (g ⊙ c(r · p ⊙ W_h v))
 *
 * U is the output matrix, g the weights of the last norm, c takes away the mean where that norm does
 * (layer norm), p are the weights of a norm after attention, r and s the model's factors of
 * residuals and logits; what a model does not have is left out. What depends on the rest of the
 * stream is left out, too: the norms' division, biases, the cap of the logits. So logits are to be
 * compared with each other; a token is favoured over another by their difference, divided by the size
 * that the stream has in the end.
 *
 * Functions have no state: any thread may call them. Channels of values are those of the site v.
 */
#ifndef QKV_MODEL_HEAD_OUTPUT_H
#define QKV_MODEL_HEAD_OUTPUT_H

#include "qkv/model.h"
#include <stdint.h>

/* W_h v: `value` has as many numbers as the layer's values are wide, `out` room for n_embd. `head` is a query head. */
int qkv_head_output(const qkv_model *model, int32_t layer, int32_t head, const float *value,
                    float *out, qkv_error *err);
/* The logits above: `out` has room for n_vocab. QKV_ERR_UNSUPPORTED for a model without logits. */
int qkv_head_logits(const qkv_model *model, int32_t layer, int32_t head, const float *value,
                    float *out, qkv_error *err);

#endif
