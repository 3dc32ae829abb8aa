/*
 * command-r: Command R and R+, Aya 23 (Hugging Face: cohere).
 *
 * Attention and feed-forward side by side after one LayerNorm without bias; RoPE on adjacent channels,
 * in the original order; logits times a factor; tied output. R+ normalises queries and keys per head,
 * each head with weights of its own.
 */
#include "model/hf/hf.h"

static const qkv_slot_override norms_of_each_head[] = {
    {QKV_LAYER_Q_NORM, NULL, "dH"}, {QKV_LAYER_K_NORM, NULL, "dG"}, {-1, NULL, NULL}};

static const char *const hf_architectures[] = {"CohereForCausalLM", NULL};

static const qkv_hf_setting hf_settings[] = {
    {"logit_scale", QKV_HF_FLOAT, "logit_scale", 0},
    {"model_max_length", QKV_HF_INT, "context_length", 0},
    {"use_qk_norm", QKV_HF_SKIP, NULL, 0},
    {"none", QKV_HF_TEXT, "rope.scaling.type", 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"cohere", "CohereForCausalLM", "{\"layer_norm_eps\": 1e-5, \"logit_scale\": 0.0625}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .settings = hf_settings,
};

const qkv_family qkv_family_command_r = {
    .name = "command-r",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_ADJACENT,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .parallel = 1,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS(O) | QKV_HAS_GATED_MLP,
    .layer_optional = QKV_HAS_HEAD_BIASES | QKV_HAS_HEAD_NORMS,
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(LOGIT_SCALE),
    .overrides = norms_of_each_head,
    .hf = &hf,
};
