/*
 * nomic-bert: Nomic's BERT, bidirectional.
 *
 * As bert with RoPE on halves, base 1000, in place of learned positions, a SwiGLU feed-forward, and no
 * biases but those of the norms. Directories are written in two ways: with the settings of the code that
 * came with the models, and as transformers writes them. There are no logits: the output is the last
 * layer's resid_post.
 */
#include "model/family/bert.h"

static const char *const hf_architectures[] = {"NomicBertModel",
                                               "NomicBertForMaskedLM",
                                               "NomicBertForPreTraining",
                                               "NomicBertForSequenceClassification",
                                               "NomicBertForTokenClassification",
                                               NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"attn.Wqkv", "attn_qkv", NULL},      {"attn.out_proj", "attn_output", NULL},
    {"norm1", "attn_output_norm", NULL},  {"mlp.fc11", "ffn_up", NULL},
    {"mlp.fc12", "ffn_gate", NULL},       {"mlp.fc2", "ffn_down", NULL},
    {"norm2", "layer_output_norm", NULL}, {NULL, NULL, NULL},
};

static const qkv_hf_name hf_model_names[] = {
    {"embeddings.word_embeddings", "token_embd", NULL},
    {"embeddings.token_type_embeddings", "token_types", NULL},
    {"emb_ln", "token_embd_norm", NULL},
    {NULL, NULL, NULL},
};

/* The models' own code reads all of these; published models have them as they must be here. */
static const qkv_hf_setting hf_settings[] = {
    {"activation_function", QKV_HF_WORD, "swiglu", 0},
    {"causal", QKV_HF_MUST, NULL, 0},
    {"prenorm", QKV_HF_MUST, NULL, 0},
    {"parallel_block", QKV_HF_MUST, NULL, 0},
    {"use_rms_norm", QKV_HF_MUST, NULL, 0},
    {"qkv_proj_bias", QKV_HF_MUST, NULL, 0},
    {"mlp_fc1_bias", QKV_HF_MUST, NULL, 0},
    {"mlp_fc2_bias", QKV_HF_MUST, NULL, 0},
    {"rotary_emb_fraction", QKV_HF_MUST, NULL, 1},
    {"rotary_emb_interleaved", QKV_HF_MUST, NULL, 0},
    {"rotary_emb_scale_base", QKV_HF_REFUSE, NULL, 0},
    {"scale_attn_weights", QKV_HF_MUST, NULL, 1},
    {"scale_attn_by_inverse_layer_idx", QKV_HF_MUST, NULL, 0},
    {"moe_every_n_layers", QKV_HF_REFUSE, NULL, 0},
    {"dense_seq_output", QKV_HF_SKIP, NULL, 0},
    {"fused_bias_fc", QKV_HF_SKIP, NULL, 0},
    {"fused_dropout_add_ln", QKV_HF_SKIP, NULL, 0},
    {"last_layer_subset", QKV_HF_SKIP, NULL, 0},
    {"pad_vocab_size_multiple", QKV_HF_SKIP, NULL, 0},
    {"parallel_block_tied_norm", QKV_HF_SKIP, NULL, 0},
    {"use_flash_attn", QKV_HF_SKIP, NULL, 0},
    {"use_xentropy", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

/* Heads that predict words or labels; the model's output is what they read. */
static const char *const hf_ignored[] = {
    "pooler.dense.weight",
    "pooler.dense.bias",
    "cls.predictions.bias",
    "cls.predictions.decoder.weight",
    "cls.predictions.decoder.bias",
    "cls.predictions.transform.dense.weight",
    "cls.predictions.transform.dense.bias",
    "cls.predictions.transform.layer_norm.weight",
    "cls.predictions.transform.layer_norm.bias",
    "cls.predictions.transform.LayerNorm.weight",
    "cls.predictions.transform.LayerNorm.bias",
    "cls.seq_relationship.weight",
    "cls.seq_relationship.bias",
    "classifier.weight",
    "classifier.bias",
    NULL,
};

/* Beyond the length of training the base grows with the prompt (rotary_scaling_factor): no prompt is
 * taken there. */
static int limit_context(qkv_hf_config *config, qkv_error *err) {
    double factor = 0;
    int64_t trained = config->n_ctx;
    int found = qkv_hf_take_float(config, "rotary_scaling_factor", 0, 1e6, &factor, err);
    if (found >= 0)
        found = qkv_hf_take_int(config, "max_trained_positions", 1, 1 << 30, &trained, err);
    if (found < 0) return found;
    if (factor != 0 && trained < config->n_ctx) {
        config->n_ctx = trained;
        qkv_hf_set_int(config, "context_length", trained);
    }
    return QKV_OK;
}

static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    const int status = limit_context(config, err);
    return status == QKV_OK ? qkv_bert_configure(config, err) : status;
}

static const qkv_hf_class hf_classes[] = {
    {"nomic_bert", "NomicBertModel", "{\"rotary_emb_base\": 1000}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .prefix = "bert.",
    .other_prefix = "nomic_bert.",
    .block = "encoder.layers.",
    .layer_names = hf_layer_names,
    .model_names = hf_model_names,
    .settings = hf_settings,
    .ignored = hf_ignored,
    .configure = hf_configure,
    .partial_rotary = 1,
    .plain_names = 1,
    .plain_output = 1,
};

const qkv_family qkv_family_nomic_bert = {
    .name = "nomic-bert",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .bidirectional = 1,
    .has_no_logits = 1,
    .layer_required = QKV_HAS(QKV) | QKV_HAS(O) | QKV_HAS(ATTN_OUT_NORM) |
                      QKV_HAS(ATTN_OUT_NORM_BIAS) | QKV_HAS_GATED_MLP | QKV_HAS(LAYER_OUT_NORM) |
                      QKV_HAS(LAYER_OUT_NORM_BIAS),
    .model_required = QKV_HAS_MODEL(TOKEN_EMBD) | QKV_HAS_MODEL(TOKEN_TYPES) |
                      QKV_HAS_MODEL(EMBD_NORM) | QKV_HAS_MODEL(EMBD_NORM_BIAS),
    .hf = &hf,
};
