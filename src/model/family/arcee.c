/*
 * arcee: AFM.
 *
 * As llama, with a plain feed-forward and the square of ReLU.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"ArceeForCausalLM", NULL};

static const qkv_hf_class hf_classes[] = {
    {"arcee", "ArceeForCausalLM", "{\"rms_norm_eps\": 1e-5}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
};

const qkv_family qkv_family_arcee = {
    .name = "arcee",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_ADJACENT,
    .activation = QKV_ACT_RELU_SQUARED,
    .qk_permuted = 1,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS(O) | QKV_HAS(FFN_NORM) |
                      QKV_HAS(UP) | QKV_HAS(DOWN),
    .layer_optional = QKV_HAS_HEAD_BIASES | QKV_HAS(O_BIAS) | QKV_HAS(UP_BIAS) | QKV_HAS(DOWN_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT) | QKV_HAS_MODEL(ROPE_FREQS),
    .hf = &hf,
};
