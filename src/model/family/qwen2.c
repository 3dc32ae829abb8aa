/*
 * qwen2: Qwen 1.5, 2 and 2.5.
 *
 * As llama, with RoPE on halves and biases on query, key and value alone.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"Qwen2ForCausalLM", NULL};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .defaults = "{\"use_sliding_window\": false}",
    .window = 1,
};

const qkv_family qkv_family_qwen2 = {
    .name = "qwen2",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .layer_required = QKV_HAS_LLAMA_LAYER | QKV_HAS_HEAD_BIASES,
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .hf = &hf,
};
