/*
 * gptneox: GPT-NeoX and Pythia.
 *
 * LayerNorms and biases everywhere, fused projection, RoPE on a part of the channels (base 10000, no
 * key), GELU in its exact form (the 20B model's config says the tanh form). Attention and feed-forward
 * stand side by side, each after its own norm, unless the file says otherwise.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"GPTNeoXForCausalLM", NULL};

/* Query, key and value of each head stand together. */
static const qkv_hf_name hf_layer_names[] = {
    {"attention.query_key_value", "attn_qkv", &qkv_maker_ungroup},
    {"attention.dense", "attn_output", NULL},
    {"mlp.dense_h_to_4h", "ffn_up", NULL},
    {"mlp.dense_4h_to_h", "ffn_down", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_name hf_model_names[] = {
    {"embed_in", "token_embd", NULL},
    {"final_layer_norm", "output_norm", NULL},
    {"embed_out", "output", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"use_parallel_residual", QKV_HF_BOOL, "use_parallel_residual", 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

/* The causal mask, which old versions saved. */
static const char *const hf_ignored[] = {".attention.bias", ".attention.masked_bias", NULL};

static const qkv_hf_class hf_classes[] = {
    {"gpt_neox", "GPTNeoXForCausalLM",
     "{\"layer_norm_eps\": 1e-5, \"use_parallel_residual\": true, \"rotary_pct\": 0.25}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .prefix = "gpt_neox.",
    .layer_names = hf_layer_names,
    .model_names = hf_model_names,
    .settings = hf_settings,
    .ignored = hf_ignored,
    .plain_output = 1,
    .partial_rotary = 1,
};

const qkv_family qkv_family_gptneox = {
    .name = "gptneox",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_GELU_ERF,
    .parallel = 1,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS(QKV) | QKV_HAS(QKV_BIAS) | QKV_HAS(O) |
                      QKV_HAS(O_BIAS) | QKV_HAS(FFN_NORM) | QKV_HAS_NORM_BIASES | QKV_HAS_PLAIN_MLP,
    .model_required = QKV_HAS_MODEL_ENDS | QKV_HAS_MODEL(OUTPUT_NORM_BIAS),
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(PARALLEL),
    .hf = &hf,
};
