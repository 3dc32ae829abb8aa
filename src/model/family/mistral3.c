/*
 * mistral3: Ministral 3.
 *
 * As llama. RoPE is scaled by YaRN without multiplying queries and keys, and queries that come later than the
 * original context have a temperature: they are multiplied, after RoPE and any edit of q, by
 * 1 + beta ln(1 + floor(position / original context)).
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"Ministral3ForCausalLM", NULL};

static const qkv_hf_setting hf_rope_settings[] = {
    {"llama_4_scaling_beta", QKV_HF_FLOAT, "attention.temperature_scale", 0},
    {"max_position_embeddings", QKV_HF_SKIP, NULL, 0}, /* said a second time */
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"ministral3", "Ministral3ForCausalLM",
     "{\"rms_norm_eps\": 1e-5, \"head_dim\": 128, \"num_key_value_heads\": 8,"
     " \"rope_parameters\": {\"rope_type\": \"yarn\", \"rope_theta\": 1000000.0, \"factor\": 16.0,"
     " \"original_max_position_embeddings\": 16384, \"beta_fast\": 32.0, \"beta_slow\": 1.0,"
     " \"mscale_all_dim\": 1.0, \"mscale\": 1.0, \"llama_4_scaling_beta\": 0.1}}",
     "{\"hidden_size\": 4096, \"intermediate_size\": 14336, \"num_hidden_layers\": 34,"
     " \"num_attention_heads\": 32, \"max_position_embeddings\": 262144,"
     " \"tie_word_embeddings\": false}"},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .rope_settings = hf_rope_settings,
    .window = QKV_HF_WINDOW,
};

const qkv_family qkv_family_mistral3 = {
    .name = "mistral3",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_ADJACENT,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .qk_permuted = 1,
    .yarn_log_divides = 1,
    .layer_required = QKV_HAS_LLAMA_LAYER,
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(TEMPERATURE) | QKV_READS(YARN_LOG),
    .hf = &hf,
};
