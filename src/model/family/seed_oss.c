/*
 * seed_oss: Seed-OSS.
 *
 * As llama, with RoPE on halves and biases on queries, keys and values. The norm before the feed-forward
 * is called post_attention_norm.
 */
#include "model/hf/hf.h"

static const qkv_slot_override norm_name[] = {
    {QKV_LAYER_FFN_NORM, "post_attention_norm.weight", NULL}, {-1, NULL, NULL}};

static const char *const hf_architectures[] = {"SeedOssForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"post_attention_layernorm", "post_attention_norm", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"attention_out_bias", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"seed_oss", "SeedOssForCausalLM",
     "{\"rms_norm_eps\": 1e-6, \"head_dim\": 128, \"num_key_value_heads\": 8}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .settings = hf_settings,
};

const qkv_family qkv_family_seed_oss = {
    .name = "seed_oss",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .layer_required = QKV_HAS_LLAMA_LAYER,
    .layer_optional = QKV_HAS_HEAD_BIASES | QKV_HAS(O_BIAS) | QKV_HAS(GATE_BIAS) |
                      QKV_HAS(UP_BIAS) | QKV_HAS(DOWN_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .overrides = norm_name,
    .hf = &hf,
};
