/*
 * falcon: Falcon 7B, 40B and their like.
 *
 * Attention and feed-forward side by side, LayerNorm, fused projection with few key/value heads, GELU
 * in its exact form, no biases, RoPE on halves (base 10000, no key). Two norms (40B): attn_norm_2 is
 * the one before attention, attn_norm the one before the feed-forward. One norm (7B): for both.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"FalconForCausalLM", NULL};

/* The queries, key and value of each group stand together. */
static const qkv_hf_name hf_layer_names[] = {
    {"input_layernorm", "attn_norm", NULL},
    {"ln_mlp", "attn_norm", NULL},
    {"ln_attn", "attn_norm_2", NULL},
    {"self_attention.query_key_value", "attn_qkv", &qkv_maker_ungroup},
    {"self_attention.dense", "attn_output", NULL},
    {"mlp.dense_h_to_4h", "ffn_up", NULL},
    {"mlp.dense_4h_to_h", "ffn_down", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_name hf_model_names[] = {
    {"word_embeddings", "token_embd", NULL},
    {"ln_f", "output_norm", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"jploski", QKV_HF_TEXT, "tensor_data_layout", 0},
    {"alibi", QKV_HF_MUST, NULL, 0},
    {"bias", QKV_HF_MUST, NULL, 0},
    {"parallel_attn", QKV_HF_MUST, NULL, 1},
    {"apply_residual_connection_post_layernorm", QKV_HF_REFUSE, NULL, 0},
    {"num_ln_in_parallel_attn", QKV_HF_SKIP, NULL, 0},
    {"ff_factor", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

/* Without the new decoder there are as many key/value heads as query heads, or one. */
static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    int is_new = 0, multi_query = 1;
    int found = qkv_hf_take_bool(config, "new_decoder_architecture", &is_new, err);
    if (found >= 0) found = qkv_hf_take_bool(config, "multi_query", &multi_query, err);
    if (found < 0) return found;
    if (!is_new && multi_query) config->n_kv_head = 1;
    qkv_hf_set_int(config, "attention.head_count_kv", config->n_kv_head);
    return QKV_OK;
}

static const qkv_hf_class hf_classes[] = {
    {"falcon", "FalconForCausalLM",
     "{\"layer_norm_epsilon\": 1e-5, \"max_position_embeddings\": 2048}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .prefix = "transformer.",
    .block = "h.",
    .activation = "activation",
    .epsilon = "layer_norm_epsilon",
    .layer_names = hf_layer_names,
    .model_names = hf_model_names,
    .settings = hf_settings,
    .configure = hf_configure,
    .plain_names = 1,
};

const qkv_family qkv_family_falcon = {
    .name = "falcon",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_GELU_ERF,
    .parallel = 1,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS(ATTN_NORM_BIAS) | QKV_HAS(QKV) | QKV_HAS(O) |
                      QKV_HAS(UP) | QKV_HAS(DOWN),
    .layer_optional = QKV_HAS(ATTN_NORM_2) | QKV_HAS(ATTN_NORM_2_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS | QKV_HAS_MODEL(OUTPUT_NORM_BIAS),
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .hf = &hf,
};
