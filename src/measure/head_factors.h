/*
 * The matrices that a layer's heads are made of, as circuits see them (qkv/circuits.h): F32, a row of
 * D values for every channel of every head, with the weights of norms folded in or not.
 *
 * W_OV = W_O W_V and W_QK = W_Qᵀ W_K are then the same thing: Lᵀ R with d rows each, L = o or q of a
 * query head, R = v or k of its group.
 */
#ifndef QKV_MEASURE_HEAD_FACTORS_H
#define QKV_MEASURE_HEAD_FACTORS_H

#include "base/fail.h"
#include "qkv/model.h"

typedef enum qkv_factor {
    QKV_FACTOR_Q, /* [H · d][D] */
    QKV_FACTOR_K, /* [G · d][D] */
    QKV_FACTOR_V, /* [G · d][D] */
    QKV_FACTOR_O  /* [H · d][D]: what a channel of z adds to the stream */
} qkv_factor;

/* The caller's to free with free. */
int qkv_head_factor(float **out, const qkv_model *model, int32_t layer, qkv_factor factor, int fold,
                    qkv_error *err);

/* Rows [first, first + n) of the token embedding or the output matrix, the same way. */
int qkv_embedding_rows(float *out, const qkv_model *model, int64_t first, int64_t n, int fold,
                       qkv_error *err);
int qkv_output_rows(float *out, const qkv_model *model, int64_t first, int64_t n, int fold,
                    qkv_error *err);

/* Do all readers of the stream take its mean away? */
int qkv_stream_is_centred(const qkv_model *model);

#endif
