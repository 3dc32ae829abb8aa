/*
 * ernie4_5: ERNIE 4.5, dense.
 *
 * As llama, with RoPE on adjacent channels as published: nothing is reordered in files.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"Ernie4_5ForCausalLM", NULL};

static const qkv_hf_class hf_classes[] = {
    {"ernie4_5", "Ernie4_5ForCausalLM",
     "{\"rms_norm_eps\": 1e-5, \"head_dim\": 128, \"num_key_value_heads\": 2,"
     " \"rope_theta\": 500000.0, \"tie_word_embeddings\": true}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
};

const qkv_family qkv_family_ernie4_5 = {
    .name = "ernie4_5",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_ADJACENT,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .layer_required = QKV_HAS_LLAMA_LAYER,
    .layer_optional = QKV_HAS_HEAD_BIASES | QKV_HAS(O_BIAS) | QKV_HAS(GATE_BIAS) |
                      QKV_HAS(UP_BIAS) | QKV_HAS(DOWN_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .hf = &hf,
};
