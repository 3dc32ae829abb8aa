/*
 * gpt2: GPT-2 and its descendants.
 *
 * LayerNorm with bias before each block, learned positions, fused query/key/value projection with
 * bias, plain feed-forward with GELU in its tanh form. Usually tied output.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"GPT2LMHeadModel", NULL};

/* Conv1D stores its weights the other way round. */
static const qkv_hf_name hf_layer_names[] = {
    {"ln_1", "attn_norm", NULL},
    {"attn.c_attn", "attn_qkv", &qkv_maker_transpose},
    {"attn.c_proj", "attn_output", &qkv_maker_transpose},
    {"ln_2", "ffn_norm", NULL},
    {"mlp.c_fc", "ffn_up", &qkv_maker_transpose},
    {"mlp.c_proj", "ffn_down", &qkv_maker_transpose},
    {NULL, NULL, NULL},
};

static const qkv_hf_name hf_model_names[] = {
    {"wte", "token_embd", NULL},
    {"wpe", "position_embd", NULL},
    {"ln_f", "output_norm", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"scale_attn_weights", QKV_HF_MUST, NULL, 1},
    {"scale_attn_by_inverse_layer_idx", QKV_HF_MUST, NULL, 0},
    {"n_special", QKV_HF_SKIP, NULL, 0},
    {"add_cross_attention", QKV_HF_MUST, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

/* The causal mask, which old versions saved. */
static const char *const hf_ignored[] = {".attn.bias", ".attn.masked_bias", NULL};

static const qkv_hf_class hf_classes[] = {
    {"gpt2", "GPT2LMHeadModel", "{\"layer_norm_epsilon\": 1e-5}", NULL},
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
};

const qkv_family qkv_family_gpt2 = {
    .name = "gpt2",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_LEARNED,
    .activation = QKV_ACT_GELU_TANH,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS(QKV) | QKV_HAS(QKV_BIAS) | QKV_HAS(O) |
                      QKV_HAS(O_BIAS) | QKV_HAS(FFN_NORM) | QKV_HAS_NORM_BIASES | QKV_HAS_PLAIN_MLP,
    .model_required =
        QKV_HAS_MODEL_ENDS | QKV_HAS_MODEL(POSITION_EMBD) | QKV_HAS_MODEL(OUTPUT_NORM_BIAS),
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .hf = &hf,
};
