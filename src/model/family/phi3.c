/*
 * phi3: Phi 3 and 4.
 *
 * As llama, with RoPE on halves, query, key and value fused, gate and up fused (gate first). Models for
 * long contexts divide the frequencies by one of two stored sets, by the prompt's length.
 */
#include "model/hf/hf.h"

static const qkv_slot_override fused_gate[] = {{QKV_LAYER_UP, NULL, "DW"}, {-1, NULL, NULL}};

static const char *const hf_architectures[] = {"Phi3ForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"self_attn.qkv_proj", "attn_qkv", NULL},
    {"mlp.gate_up_proj", "ffn_up", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"original_max_position_embeddings", QKV_HF_INT, "rope.scaling.original_context_length", 0},
    {"full_attn_mod", QKV_HF_MUST, NULL, 1},
    {"interpolate_factor", QKV_HF_MUST, NULL, 1},
    {"lm_head_bias", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"phi3", "Phi3ForCausalLM", "{\"rms_norm_eps\": 1e-5}",
     "{\"hidden_size\": 3072, \"intermediate_size\": 8192, \"num_hidden_layers\": 32,"
     " \"num_attention_heads\": 32, \"max_position_embeddings\": 4096,"
     " \"tie_word_embeddings\": false}"},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .settings = hf_settings,
    .partial_rotary = 1,
    .yarn_is_longrope = 1,
    .window = QKV_HF_WINDOW,
    .writes_no_window = 1,
};

const qkv_family qkv_family_phi3 = {
    .name = "phi3",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED_FUSED,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS(QKV) | QKV_HAS(O) | QKV_HAS(FFN_NORM) |
                      QKV_HAS(UP) | QKV_HAS(DOWN),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT) | QKV_HAS_MODEL(ROPE_LONG) | QKV_HAS_MODEL(ROPE_SHORT),
    .overrides = fused_gate,
    .hf = &hf,
};
