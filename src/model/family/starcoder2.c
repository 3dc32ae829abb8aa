/*
 * starcoder2: StarCoder 2.
 *
 * LayerNorms and biases everywhere, grouped key/value heads, RoPE on halves, plain feed-forward with
 * GELU in its tanh form.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"Starcoder2ForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"mlp.c_fc", "ffn_up", NULL},
    {"mlp.c_proj", "ffn_down", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"activation_function", QKV_HF_SKIP, NULL, 0}, /* of StarCoder 1, as is the next */
    {"layer_norm_epsilon", QKV_HF_SKIP, NULL, 0},
    {"norm_type", QKV_HF_WORD, "layer_norm", 0},
    {"mlp_type", QKV_HF_WORD, "default", 0},
    {"scale_attn_weights", QKV_HF_MUST, NULL, 1},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"starcoder2", "Starcoder2ForCausalLM", "{\"norm_epsilon\": 1e-5}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .epsilon = "norm_epsilon",
    .layer_names = hf_layer_names,
    .settings = hf_settings,
    .window = QKV_HF_WINDOW,
};

const qkv_family qkv_family_starcoder2 = {
    .name = "starcoder2",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_GELU_TANH,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS_HEAD_BIASES | QKV_HAS(O) |
                      QKV_HAS(O_BIAS) | QKV_HAS(FFN_NORM) | QKV_HAS_NORM_BIASES | QKV_HAS_PLAIN_MLP,
    .model_required = QKV_HAS_MODEL_ENDS | QKV_HAS_MODEL(OUTPUT_NORM_BIAS),
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .hf = &hf,
};
