/*
 * olmo: the first OLMo.
 *
 * As llama, with LayerNorms that have neither weights nor biases. Where clip_qkv is set, queries, keys
 * and values are kept within it, before any edit.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"OlmoForCausalLM", NULL};

static const qkv_hf_setting hf_settings[] = {
    {"clip_qkv", QKV_HF_FLOAT, "attention.clamp_kqv", 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"olmo", "OlmoForCausalLM", "{}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .fixed_epsilon = 1e-5,
    .settings = hf_settings,
};

const qkv_family qkv_family_olmo = {
    .name = "olmo",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_ADJACENT,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .qk_permuted = 1,
    .layer_ones = QKV_HAS(ATTN_NORM) | QKV_HAS(FFN_NORM),
    .model_ones = QKV_HAS_MODEL(OUTPUT_NORM),
    .layer_required = QKV_HAS_SPLIT_HEADS | QKV_HAS(O) | QKV_HAS_GATED_MLP,
    .layer_optional = QKV_HAS_HEAD_BIASES | QKV_HAS(O_BIAS),
    .model_required = QKV_HAS_MODEL(TOKEN_EMBD),
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(CLAMP),
    .hf = &hf,
};
