/*
 * falcon: Falcon 7B, 40B and their like.
 *
 * Attention and feed-forward side by side, LayerNorm, fused projection with few key/value heads, GELU
 * in its exact form, no biases, RoPE on halves (base 10000, no key). Two norms (40B): attn_norm_2 is
 * the one before attention, attn_norm the one before the feed-forward. One norm (7B): for both.
 */
#include "model/family.h"

const qkv_family qkv_family_falcon = {
    .name = "falcon",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_GELU_ERF,
    .parallel = 1,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS(ATTN_NORM_BIAS) | QKV_HAS(QKV) | QKV_HAS(O) |
                      QKV_HAS(UP) | QKV_HAS(DOWN),
    .layer_optional = QKV_HAS(ATTN_NORM_2) | QKV_HAS(ATTN_NORM_2_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS | QKV_HAS_MODEL(OUTPUT_NORM_BIAS),
    .model_optional = QKV_HAS_MODEL(OUTPUT),
};
