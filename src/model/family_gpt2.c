/*
 * gpt2: GPT-2 and its descendants.
 *
 * LayerNorm with bias before each block, learned positions, fused query/key/value projection with
 * bias, plain feed-forward with GELU in its tanh form. Usually tied output.
 */
#include "model/family.h"

const qkv_family qkv_family_gpt2 = {
    .name = "gpt2",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_LEARNED,
    .activation = QKV_ACT_GELU_TANH,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS(QKV) | QKV_HAS(QKV_BIAS) | QKV_HAS(O) |
                      QKV_HAS(O_BIAS) | QKV_HAS(FFN_NORM) | QKV_HAS_NORM_BIASES | QKV_HAS_PLAIN_MLP,
    .model_required =
        QKV_HAS_MODEL_ENDS | QKV_HAS_MODEL(POSITION_EMBD) | QKV_HAS_MODEL(OUTPUT_NORM_BIAS),
    .model_optional = QKV_HAS_MODEL(OUTPUT),
};
