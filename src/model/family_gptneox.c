/*
 * gptneox: GPT-NeoX and Pythia.
 *
 * LayerNorms and biases everywhere, fused projection, RoPE on a part of the channels (base 10000, no
 * key), GELU in its exact form. Attention and feed-forward stand side by side, each behind its own
 * norm, unless the file says otherwise.
 */
#include "model/family.h"

const qkv_family qkv_family_gptneox = {
    .name = "gptneox",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_GELU_ERF,
    .parallel = 1,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS(QKV) | QKV_HAS(QKV_BIAS) | QKV_HAS(O) |
                      QKV_HAS(O_BIAS) | QKV_HAS(FFN_NORM) | QKV_HAS_NORM_BIASES | QKV_HAS_PLAIN_MLP,
    .model_required = QKV_HAS_MODEL_ENDS | QKV_HAS_MODEL(OUTPUT_NORM_BIAS),
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(PARALLEL),
};
