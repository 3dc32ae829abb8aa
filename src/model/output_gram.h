/*
 * The output projection of attention, head by head, as far as lengths go: how long a value becomes
 * when it is projected.
 */
#ifndef QKV_MODEL_OUTPUT_GRAM_H
#define QKV_MODEL_OUTPUT_GRAM_H

#include "base/fail.h"
#include "qkv/model.h"

/* W_hᵀ W_h for every query head h: H × d × d numbers, the caller's to free with free. The squared
 * length of W_h v is vᵀ (W_hᵀ W_h) v. */
int qkv_output_gram(double **out, const qkv_model *model, int32_t layer, qkv_error *err);

#endif
