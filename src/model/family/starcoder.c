/*
 * starcoder: StarCoder and SantaCoder (GPTBigCode).
 *
 * As gpt2, with one key/value head for all query heads, unless multi_query says otherwise.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"GPTBigCodeForCausalLM", NULL};

/* With a key/value head for each, query, key and value of a head stand together. */
static const qkv_hf_name hf_layer_names[] = {
    {"ln_1", "attn_norm", NULL},
    {"attn.c_attn", "attn_qkv", &qkv_maker_ungroup},
    {"attn.c_proj", "attn_output", NULL},
    {"ln_2", "ffn_norm", NULL},
    {"mlp.c_fc", "ffn_up", NULL},
    {"mlp.c_proj", "ffn_down", NULL},
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
    {"add_cross_attention", QKV_HF_MUST, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

/* The causal mask, which old versions saved. */
static const char *const hf_ignored[] = {".attn.bias", ".attn.masked_bias", NULL};

static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    int shared = 1;
    const int found = qkv_hf_take_bool(config, "multi_query", &shared, err);
    if (found < 0) return found;
    config->n_kv_head = shared ? 1 : config->n_head;
    qkv_hf_set_int(config, "attention.head_count_kv", config->n_kv_head);
    return QKV_OK;
}

static const qkv_hf_class hf_classes[] = {
    {"gpt_bigcode", "GPTBigCodeForCausalLM",
     "{\"layer_norm_epsilon\": 1e-5, \"tie_word_embeddings\": true}", NULL},
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
    .configure = hf_configure,
    .plain_names = 1,
};

const qkv_family qkv_family_starcoder = {
    .name = "starcoder",
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
