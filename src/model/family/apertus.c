/*
 * apertus: Apertus 8B and 70B.
 *
 * As llama with RoPE on halves and queries and keys normalised per head; the feed-forward is plain, with xIELU,
 * whose four numbers each layer has of its own. A GGUF file has them as lists without an architecture before
 * their names, a directory as tensors.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"ApertusForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"attention_layernorm", "attn_norm", NULL},
    {"feedforward_layernorm", "ffn_norm", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_name hf_layer_numbers[] = {
    {"mlp.act_fn.alpha_p", "xielu.alpha_p", NULL},
    {"mlp.act_fn.alpha_n", "xielu.alpha_n", NULL},
    {"mlp.act_fn.beta", "xielu.beta", NULL},
    {"mlp.act_fn.eps", "xielu.eps", NULL},
    {NULL, NULL, NULL},
};

/* Which the class does not read: it is always so. */
static const qkv_hf_setting hf_settings[] = {
    {"post_norm", QKV_HF_MUST, NULL, 0},
    {"qk_norm", QKV_HF_MUST, NULL, 1},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static const qkv_hf_class hf_classes[] = {
    {"apertus", "ApertusForCausalLM",
     "{\"rms_norm_eps\": 1e-5, \"hidden_act\": \"xielu\", \"rope_theta\": 12000000.0,"
     " \"rope_parameters\": {\"rope_type\": \"llama3\", \"factor\": 8.0,"
     " \"original_max_position_embeddings\": 8192, \"low_freq_factor\": 1.0,"
     " \"high_freq_factor\": 4.0}}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .layer_numbers = hf_layer_numbers,
    .settings = hf_settings,
    .usual_activations = "|xielu|",
};

const qkv_family qkv_family_apertus = {
    .name = "apertus",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_XIELU,
    .mlp = QKV_MLP_PLAIN,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS_HEAD_NORMS | QKV_HAS(O) |
                      QKV_HAS(FFN_NORM) | QKV_HAS(UP) | QKV_HAS(DOWN),
    .layer_optional = QKV_HAS_HEAD_BIASES | QKV_HAS(O_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT) | QKV_HAS_MODEL(ROPE_FREQS) | QKV_HAS_MODEL(ROPE_LONG) |
                      QKV_HAS_MODEL(ROPE_SHORT),
    .hf = &hf,
};
