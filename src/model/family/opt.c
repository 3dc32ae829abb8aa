/*
 * opt: OPT and Galactica.
 *
 * LayerNorms before the blocks, learned positions, ReLU, biases. Galactica has linear layers without
 * biases (enable_bias) and norms without weights (layer_norm_elementwise_affine). The file of the
 * positions begins with two rows that no position has: they are left out. GGUF has no such architecture.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"OPTForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"self_attn_layer_norm", "attn_norm", NULL},
    {"self_attn.q_proj", "attn_q", NULL},
    {"self_attn.k_proj", "attn_k", NULL},
    {"self_attn.v_proj", "attn_v", NULL},
    {"self_attn.out_proj", "attn_output", NULL},
    {"final_layer_norm", "ffn_norm", NULL},
    {"fc1", "ffn_up", NULL},
    {"fc2", "ffn_down", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_name hf_model_names[] = {
    {"decoder.embed_tokens", "token_embd", NULL},
    {"decoder.embed_positions", "position_embd", &qkv_maker_skip_rows},
    {"decoder.final_layer_norm", "output_norm", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"do_layer_norm_before", QKV_HF_MUST, NULL, 1},
    {"_remove_final_layer_norm", QKV_HF_MUST, NULL, 0},
    {"layerdrop", QKV_HF_SKIP, NULL, 0},
    {"activation_dropout", QKV_HF_SKIP, NULL, 0},
    {"dropout", QKV_HF_SKIP, NULL, 0},
    {"init_std", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    int64_t width = config->n_embd;
    int biases = 1, affine = 1;
    int found = qkv_hf_take_int(config, "word_embed_proj_dim", 1, 1 << 30, &width, err);
    if (found >= 0) found = qkv_hf_take_bool(config, "enable_bias", &biases, err);
    if (found >= 0) found = qkv_hf_take_bool(config, "layer_norm_elementwise_affine", &affine, err);
    if (found < 0) return found;
    if (width != config->n_embd)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: word_embed_proj_dim is supported only as hidden_size", config->path);
    config->first_position = 2;
    if (!biases) qkv_hf_set_bool(config, "linear_biases", 0);
    if (!affine) qkv_hf_set_bool(config, "norm_weights", 0);
    return QKV_OK;
}

static const qkv_hf_class hf_classes[] = {
    {"opt", "OPTForCausalLM",
     "{\"max_position_embeddings\": 2048, \"do_layer_norm_before\": true, "
     "\"tie_word_embeddings\": true, \"ffn_dim\": 3072}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .block = "decoder.layers.",
    .activation = "activation_function",
    .fixed_epsilon = 1e-5,
    .layer_names = hf_layer_names,
    .model_names = hf_model_names,
    .settings = hf_settings,
    .configure = hf_configure,
    .plain_names = 1,
};

const qkv_family qkv_family_opt = {
    .name = "opt",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_LEARNED,
    .activation = QKV_ACT_RELU,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS_HEAD_BIASES | QKV_HAS(O) |
                      QKV_HAS(O_BIAS) | QKV_HAS(FFN_NORM) | QKV_HAS_NORM_BIASES | QKV_HAS_PLAIN_MLP,
    .model_required =
        QKV_HAS_MODEL_ENDS | QKV_HAS_MODEL(POSITION_EMBD) | QKV_HAS_MODEL(OUTPUT_NORM_BIAS),
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(LINEAR_BIASES) | QKV_READS(NORM_WEIGHTS),
    .hf = &hf,
};
