/*
 * olmo2: OLMo 2.
 *
 * No norm before the blocks: their outputs are RMS-normalised instead. Queries and keys are normalised
 * over all heads together. Otherwise as llama, with RoPE on halves.
 */
#include "model/hf/hf.h"

static const qkv_slot_override whole_width_norms[] = {
    {QKV_LAYER_Q_NORM, NULL, "Q"}, {QKV_LAYER_K_NORM, NULL, "K"}, {-1, NULL, NULL}};

static const char *const hf_architectures[] = {"Olmo2ForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"post_attention_layernorm", "post_attention_norm", NULL},
    {"post_feedforward_layernorm", "post_ffw_norm", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_class hf_classes[] = {
    {"olmo2", "Olmo2ForCausalLM", "{\"rms_norm_eps\": 1e-5}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
};

const qkv_family qkv_family_olmo2 = {
    .name = "olmo2",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .layer_required = QKV_HAS_SPLIT_HEADS | QKV_HAS_HEAD_NORMS | QKV_HAS(O) |
                      QKV_HAS(POST_ATTN_NORM) | QKV_HAS_GATED_MLP | QKV_HAS(POST_FFN_NORM),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .overrides = whole_width_norms,
    .hf = &hf,
};
