/*
 * phi2: Phi 1, 1.5 and 2 (Hugging Face: phi).
 *
 * Attention and feed-forward side by side after one LayerNorm, RoPE on a part of the channels, biases
 * everywhere, on the output projection too. Older files have the three projections fused.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"PhiForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"self_attn.dense", "attn_output", NULL},
    {"mlp.fc1", "ffn_up", NULL},
    {"mlp.fc2", "ffn_down", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_name hf_model_names[] = {
    {"final_layernorm", "output_norm", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"qk_layernorm", QKV_HF_MUST, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"phi", "PhiForCausalLM", "{\"layer_norm_eps\": 1e-5, \"partial_rotary_factor\": 0.5}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .model_names = hf_model_names,
    .settings = hf_settings,
    .partial_rotary = 1,
};

const qkv_family qkv_family_phi2 = {
    .name = "phi2",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_GELU_TANH,
    .parallel = 1,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS(ATTN_NORM_BIAS) | QKV_HAS_SPLIT_HEADS |
                      QKV_HAS_HEAD_BIASES | QKV_HAS(O) | QKV_HAS(O_BIAS) | QKV_HAS_PLAIN_MLP,
    .layer_optional = QKV_HAS(QKV) | QKV_HAS(QKV_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS | QKV_HAS_MODEL(OUTPUT_NORM_BIAS) | QKV_HAS_MODEL(OUTPUT) |
                      QKV_HAS_MODEL(OUTPUT_BIAS),
    .hf = &hf,
};
