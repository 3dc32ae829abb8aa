/*
 * smollm3: SmolLM 3.
 *
 * As llama; every fourth layer does not turn its queries and keys. The file does not say which.
 */
#include "model/family.h"

const qkv_family qkv_family_smollm3 = {
    .name = "smollm3",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_ADJACENT,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .qk_permuted = 1,
    .rope_skip_period = 4,
    .layer_required = QKV_HAS_LLAMA_LAYER,
    .layer_optional = QKV_HAS_HEAD_BIASES | QKV_HAS(O_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
};
