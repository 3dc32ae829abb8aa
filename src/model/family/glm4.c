/*
 * glm4: GLM 4 (0414).
 *
 * RMS norms before and after both blocks, biases on queries, keys and values, gate and up fused (gate
 * first). RoPE turns adjacent channels of the first half of each head, as published: nothing is reordered
 * in files.
 */
#include "model/hf/hf.h"

static const qkv_slot_override fused_gate[] = {{QKV_LAYER_UP, NULL, "DW"}, {-1, NULL, NULL}};

static const char *const hf_architectures[] = {"Glm4ForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"post_self_attn_layernorm", "post_attention_norm", NULL},
    {"post_mlp_layernorm", "post_ffw_norm", NULL},
    {"mlp.gate_up_proj", "ffn_up", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_class hf_classes[] = {
    {"glm4", "Glm4ForCausalLM",
     "{\"rms_norm_eps\": 1.5625e-7, \"head_dim\": 128, \"num_key_value_heads\": 2,"
     " \"partial_rotary_factor\": 0.5}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .partial_rotary = 1,
};

const qkv_family qkv_family_glm4 = {
    .name = "glm4",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_ADJACENT,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED_FUSED,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS(O) |
                      QKV_HAS(POST_ATTN_NORM) | QKV_HAS(FFN_NORM) | QKV_HAS(UP) | QKV_HAS(DOWN) |
                      QKV_HAS(POST_FFN_NORM),
    .layer_optional = QKV_HAS_HEAD_BIASES,
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .overrides = fused_gate,
    .hf = &hf,
};
