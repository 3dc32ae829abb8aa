/*
 * olmo2: OLMo 2 and 3.
 *
 * No norm before the blocks: their outputs are RMS-normalised instead. Queries and keys are normalised
 * over all heads together. Otherwise as llama, with RoPE on halves. OLMo 3 has a window in three of four
 * layers, and there RoPE is not scaled, whatever the others have: transformers 5.0 to 5.12 scale it
 * everywhere, which the models were not trained with.
 */
#include "model/hf/hf.h"

static const qkv_slot_override whole_width_norms[] = {
    {QKV_LAYER_Q_NORM, NULL, "Q"}, {QKV_LAYER_K_NORM, NULL, "K"}, {-1, NULL, NULL}};

static const char *const hf_architectures[] = {"Olmo2ForCausalLM", "Olmo3ForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"post_attention_layernorm", "post_attention_norm", NULL},
    {"post_feedforward_layernorm", "post_ffw_norm", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_class hf_classes[] = {
    {"olmo2", "Olmo2ForCausalLM", "{\"rms_norm_eps\": 1e-5}", NULL},
    {"olmo3", "Olmo3ForCausalLM",
     "{\"rms_norm_eps\": 1e-5, \"rope_theta\": 500000.0, \"sliding_window\": 4096}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .window_architecture = "Olmo3ForCausalLM",
    .window = QKV_HF_WINDOW | QKV_HF_WINDOW_TYPES,
    .writes_window_layers = 1,
};

const qkv_family qkv_family_olmo2 = {
    .name = "olmo2",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .window_period = 4,
    .local_rope = 1,
    .layer_required = QKV_HAS_SPLIT_HEADS | QKV_HAS_HEAD_NORMS | QKV_HAS(O) |
                      QKV_HAS(POST_ATTN_NORM) | QKV_HAS_GATED_MLP | QKV_HAS(POST_FFN_NORM),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .overrides = whole_width_norms,
    .hf = &hf,
};
