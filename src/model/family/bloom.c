/*
 * bloom: BLOOM.
 *
 * LayerNorms and biases everywhere, fused projection, GELU in its tanh form; a LayerNorm on the embeddings.
 * In place of positions scores have a bias by distance (ALiBi). Configurations do not say how long prompts
 * may be; seq_length is how long they were in training, 2048 for all published models.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"BloomForCausalLM", NULL};

/* Query, key and value of each head stand together. */
static const qkv_hf_name hf_layer_names[] = {
    {"input_layernorm", "attn_norm", NULL},
    {"self_attention.query_key_value", "attn_qkv", &qkv_maker_ungroup},
    {"self_attention.dense", "attn_output", NULL},
    {"post_attention_layernorm", "ffn_norm", NULL},
    {"mlp.dense_h_to_4h", "ffn_up", NULL},
    {"mlp.dense_4h_to_h", "ffn_down", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_name hf_model_names[] = {
    {"word_embeddings", "token_embd", NULL},
    {"word_embeddings_layernorm", "token_embd_norm", NULL},
    {"ln_f", "output_norm", NULL},
    {NULL, NULL, NULL},
};

/* What the first program for these models read; transformers does not. */
static const qkv_hf_setting hf_settings[] = {
    {"apply_residual_connection_post_layernorm", QKV_HF_MUST, NULL, 0},
    {"slow_but_exact", QKV_HF_SKIP, NULL, 0}, /* the order of sums over parts of a matrix */
    {"masked_softmax_fusion", QKV_HF_SKIP, NULL, 0},
    {"bias_dropout_fusion", QKV_HF_SKIP, NULL, 0},
    {"skip_bias_add", QKV_HF_SKIP, NULL, 0},
    {"skip_bias_add_qkv", QKV_HF_SKIP, NULL, 0},
    {"offset_alibi", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    (void)err;
    qkv_hf_set_int(config, "attention.head_count_kv", config->n_head);
    return QKV_OK;
}

static const qkv_hf_class hf_classes[] = {
    {"bloom", "BloomForCausalLM",
     "{\"seq_length\": 2048, \"layer_norm_epsilon\": 1e-5, \"tie_word_embeddings\": true}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .prefix = "transformer.",
    .block = "h.",
    .epsilon = "layer_norm_epsilon",
    .layer_names = hf_layer_names,
    .model_names = hf_model_names,
    .settings = hf_settings,
    .configure = hf_configure,
    .plain_names = 1,
    .fixed_activation = 1,
};

const qkv_family qkv_family_bloom = {
    .name = "bloom",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ALIBI,
    .alibi_exponent = 8,
    .activation = QKV_ACT_GELU_TANH,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS(QKV) | QKV_HAS(QKV_BIAS) | QKV_HAS(O) |
                      QKV_HAS(O_BIAS) | QKV_HAS(FFN_NORM) | QKV_HAS_NORM_BIASES | QKV_HAS_PLAIN_MLP,
    .model_required = QKV_HAS_MODEL_ENDS | QKV_HAS_MODEL(EMBD_NORM) |
                      QKV_HAS_MODEL(EMBD_NORM_BIAS) | QKV_HAS_MODEL(OUTPUT_NORM_BIAS),
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .hf = &hf,
};
