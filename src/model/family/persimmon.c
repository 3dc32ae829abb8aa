/*
 * persimmon: Persimmon.
 *
 * Biases and LayerNorms everywhere, also on the queries and keys of each head, with weights and biases
 * that heads share; fused projection; RoPE on half of the channels; the square of ReLU. GGUF has no such
 * architecture.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"PersimmonForCausalLM", NULL};

/* Query, key and value of each head stand together. */
static const qkv_hf_name hf_layer_names[] = {
    {"self_attn.query_key_value", "attn_qkv", &qkv_maker_ungroup},
    {"self_attn.dense", "attn_output", NULL},
    {"self_attn.q_layernorm", "attn_q_norm", NULL},
    {"self_attn.k_layernorm", "attn_k_norm", NULL},
    {"mlp.dense_h_to_4h", "ffn_up", NULL},
    {"mlp.dense_4h_to_h", "ffn_down", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_name hf_model_names[] = {
    {"final_layernorm", "output_norm", NULL},
    {NULL, NULL, NULL},
};

/* Norms of heads are there or not: the key says which, so that one that is missing is an error. */
static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    int normed = 0;
    config->n_kv_head = config->n_head; /* whatever the config says */
    qkv_hf_set_int(config, "attention.head_count_kv", config->n_head);
    const int found = qkv_hf_take_bool(config, "qk_layernorm", &normed, err);
    if (found >= 0 && !normed) qkv_hf_set_bool(config, "attention.head_norms", 0);
    return found < 0 ? found : QKV_OK;
}

static const qkv_hf_class hf_classes[] = {
    {"persimmon", "PersimmonForCausalLM",
     "{\"layer_norm_eps\": 1e-5, \"qk_layernorm\": true, \"rope_theta\": 25000.0, "
     "\"partial_rotary_factor\": 0.5, \"hidden_act\": \"relu2\", "
     "\"max_position_embeddings\": 16384, \"tie_word_embeddings\": false}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .model_names = hf_model_names,
    .configure = hf_configure,
    .partial_rotary = 1,
};

const qkv_family qkv_family_persimmon = {
    .name = "persimmon",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_RELU_SQUARED,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS(QKV) | QKV_HAS(QKV_BIAS) | QKV_HAS_HEAD_NORMS |
                      QKV_HAS(Q_NORM_BIAS) | QKV_HAS(K_NORM_BIAS) | QKV_HAS(O) | QKV_HAS(O_BIAS) |
                      QKV_HAS(FFN_NORM) | QKV_HAS_NORM_BIASES | QKV_HAS_PLAIN_MLP,
    .model_required = QKV_HAS_MODEL_ENDS | QKV_HAS_MODEL(OUTPUT_NORM_BIAS),
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(HEAD_NORMS),
    .hf = &hf,
};
