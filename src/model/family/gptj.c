/*
 * gptj: GPT-J.
 *
 * Attention and feed-forward side by side after one LayerNorm, RoPE on pairs (2i, 2i+1) of the first
 * rotary_dim channels, GELU in its tanh form. Attention has no biases, the output has one. GGUF has no
 * such architecture: the names of its tensors and keys are the usual ones.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"GPTJForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"ln_1", "attn_norm", NULL},
    {"attn.q_proj", "attn_q", NULL},
    {"attn.k_proj", "attn_k", NULL},
    {"attn.v_proj", "attn_v", NULL},
    {"attn.out_proj", "attn_output", NULL},
    {"mlp.fc_in", "ffn_up", NULL},
    {"mlp.fc_out", "ffn_down", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_name hf_model_names[] = {
    {"wte", "token_embd", NULL},
    {"ln_f", "output_norm", NULL},
    {NULL, NULL, NULL},
};

/* The class reads neither; no model is known that says otherwise. */
static const qkv_hf_setting hf_settings[] = {
    {"rotary", QKV_HF_MUST, NULL, 1},
    {"scale_attn_weights", QKV_HF_MUST, NULL, 1},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

/* The causal mask, which old versions saved. */
static const char *const hf_ignored[] = {".attn.bias", ".attn.masked_bias", NULL};

static const qkv_hf_class hf_classes[] = {
    {"gptj", "GPTJForCausalLM",
     "{\"n_positions\": 2048, \"rotary_dim\": 64, \"layer_norm_epsilon\": 1e-5, "
     "\"tie_word_embeddings\": false}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .prefix = "transformer.",
    .block = "h.",
    .activation = "activation_function",
    .epsilon = "layer_norm_epsilon",
    .layer_names = hf_layer_names,
    .model_names = hf_model_names,
    .settings = hf_settings,
    .ignored = hf_ignored,
    .plain_names = 1,
    .rotary_dim = 1,
};

const qkv_family qkv_family_gptj = {
    .name = "gptj",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_ADJACENT,
    .activation = QKV_ACT_GELU_TANH,
    .parallel = 1,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS(ATTN_NORM_BIAS) | QKV_HAS_SPLIT_HEADS |
                      QKV_HAS(O) | QKV_HAS_PLAIN_MLP,
    .model_required =
        QKV_HAS_MODEL_ENDS | QKV_HAS_MODEL(OUTPUT_NORM_BIAS) | QKV_HAS_MODEL(OUTPUT_BIAS),
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .hf = &hf,
};
