/*
 * cohere2: Command R7B and A.
 *
 * As command-r without QK-norm; three layers with a window and RoPE, then one that sees everything and
 * does not turn.
 */
#include "model/family.h"

const qkv_family qkv_family_cohere2 = {
    .name = "cohere2",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_ADJACENT,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .parallel = 1,
    .window_period = 4,
    .rope_skip_period = 4,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS(O) | QKV_HAS_GATED_MLP,
    .layer_optional = QKV_HAS_HEAD_BIASES,
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(LOGIT_SCALE),
};
