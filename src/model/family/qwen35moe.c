/*
 * qwen35moe: Qwen 3.5 with experts in every layer.
 *
 * As qwen35; the best k of all experts, with shares that sum to 1, and a shared expert times the sigmoid of its
 * own gate.
 */
#include "model/family/delta_net.h"

static const char *const hf_architectures[] = {"Qwen3_5MoeForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    QKV_DELTA_NET_NORMS, QKV_DELTA_NET_DEALT, QKV_DELTA_NET_EXPERTS, {NULL, NULL, NULL}};

static const qkv_hf_setting hf_settings[] = {
    {"moe_intermediate_size", QKV_HF_INT, "expert_feed_forward_length", 0},
    {"shared_expert_intermediate_size", QKV_HF_INT, "expert_shared_feed_forward_length", 0},
    {"attn_output_gate", QKV_HF_MUST, NULL, 1},
    {"norm_topk_prob", QKV_HF_MUST, NULL, 1},
    {"mlp_only_layers", QKV_HF_REFUSE, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"qwen3_5_moe_text", "Qwen3_5MoeForCausalLM",
     "{" QKV_DELTA_NET_DEFAULTS ", \"num_experts\": 256, \"num_experts_per_tok\": 8,"
     " \"moe_intermediate_size\": 512, \"shared_expert_intermediate_size\": 512}",
     "{\"hidden_size\": 2048, \"num_hidden_layers\": 40, \"num_attention_heads\": 16,"
     " \"num_key_value_heads\": 2, \"max_position_embeddings\": 32768,"
     " \"tie_word_embeddings\": false}"},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .model_names = qkv_delta_net_model_names,
    .settings = hf_settings,
    .ignored_part = "mtp",
    .partial_rotary = 1,
    .writes_sections = 1,
    .configure = qkv_hf_read_delta_net,
};

const qkv_family qkv_family_qwen35moe = {
    .name = "qwen35moe",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .layer_required = QKV_HAS_DELTA_NET_EXPERTS,
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(EXPERTS),
    .mixer = QKV_MIXER_DELTA,
    .mixer_required = QKV_HAS_DELTA_NET | QKV_HAS_MIXER(ALPHA) | QKV_HAS_MIXER(BETA),
    .attention_gate = 1,
    .overrides = qkv_delta_net_overrides,
    .hf = &hf,
};
