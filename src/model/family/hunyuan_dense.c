/*
 * hunyuan-dense: Hunyuan V1, dense models of 0.5B to 7B.
 *
 * As llama with RoPE on halves; queries and keys are normalised per head after RoPE. So q and k are edited
 * after RoPE too, and q_rot and k_rot are the same tensors once more.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"HunYuanDenseV1ForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"self_attn.query_layernorm", "attn_q_norm", NULL},
    {"self_attn.key_layernorm", "attn_k_norm", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"eod_token_id", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", "{\"rms_norm_eps\": 1e-5}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .settings = hf_settings,
    .dynamic_has_alpha = 1,
};

const qkv_family qkv_family_hunyuan_dense = {
    .name = "hunyuan-dense",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .norm_after_rope = 1,
    .layer_required = QKV_HAS_LLAMA_LAYER | QKV_HAS_HEAD_NORMS,
    .layer_optional = QKV_HAS_HEAD_BIASES | QKV_HAS(O_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .hf = &hf,
};
