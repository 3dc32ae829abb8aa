/*
 * qwen35: Qwen 3.5, dense.
 *
 * Most layers are gated delta-nets, every fourth is attention. As qwen3, with a gate: W_q gives, per head, q
 * and then a gate, whose sigmoid z is multiplied by before W_o. A part of the channels turns. Norms multiply
 * by 1 + w, but for the one inside the mixer.
 */
#include "model/family/delta_net.h"

static const char *const hf_architectures[] = {"Qwen3_5ForCausalLM", NULL};

const qkv_hf_name qkv_delta_net_model_names[] = {{"norm", "output_norm", &qkv_maker_plus_one},
                                                 {NULL, NULL, NULL}};

static const qkv_hf_name hf_layer_names[] = {
    QKV_DELTA_NET_NORMS, QKV_DELTA_NET_DEALT, {NULL, NULL, NULL}};

static const qkv_hf_setting hf_settings[] = {
    {"attn_output_gate", QKV_HF_MUST, NULL, 1},
    {"mlp_only_layers", QKV_HF_REFUSE, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"qwen3_5_text", "Qwen3_5ForCausalLM", "{" QKV_DELTA_NET_DEFAULTS "}",
     "{\"hidden_size\": 4096, \"intermediate_size\": 12288, \"num_hidden_layers\": 32,"
     " \"num_attention_heads\": 16, \"num_key_value_heads\": 4,"
     " \"max_position_embeddings\": 32768, \"tie_word_embeddings\": false}"},
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

const qkv_slot_override qkv_delta_net_overrides[] = {
    {QKV_LAYER_FFN_NORM, "post_attention_norm.weight", NULL},
    {QKV_LAYER_Q, NULL, "DB"},
    {-1, NULL, NULL},
};

const qkv_family qkv_family_qwen35 = {
    .name = "qwen35",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .layer_required = QKV_HAS_LLAMA_LAYER | QKV_HAS_HEAD_NORMS,
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .mixer = QKV_MIXER_DELTA,
    .mixer_required = QKV_HAS_DELTA_NET | QKV_HAS_MIXER(ALPHA) | QKV_HAS_MIXER(BETA),
    .attention_gate = 1,
    .overrides = qkv_delta_net_overrides,
    .hf = &hf,
};
