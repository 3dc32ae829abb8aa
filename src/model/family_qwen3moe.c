/*
 * qwen3moe: Qwen 3 with experts in every layer.
 *
 * As qwen3; the best k of all experts share the token, weighted by the softmax of their scores.
 */
#include "model/family.h"

const qkv_family qkv_family_qwen3moe = {
    .name = "qwen3moe",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS_HEAD_NORMS | QKV_HAS(O) |
                      QKV_HAS(FFN_NORM) | QKV_HAS_EXPERTS,
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(EXPERTS),
};
