/*
 * DistilBERT: BERT without segments, under names of its own.
 *
 * Positions may have been sines when training began (sinusoidal_pos_embds); the file has the table.
 */
#include "model/family/bert.h"

static const char *const hf_architectures[] = {"DistilBertModel",
                                               "DistilBertForMaskedLM",
                                               "DistilBertForSequenceClassification",
                                               "DistilBertForTokenClassification",
                                               "DistilBertForMultipleChoice",
                                               "DistilBertForQuestionAnswering",
                                               NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"attention.q_lin", "attn_q", NULL},
    {"attention.k_lin", "attn_k", NULL},
    {"attention.v_lin", "attn_v", NULL},
    {"attention.out_lin", "attn_output", NULL},
    {"sa_layer_norm", "attn_output_norm", NULL},
    {"ffn.lin1", "ffn_up", NULL},
    {"ffn.lin2", "ffn_down", NULL},
    {"output_layer_norm", "layer_output_norm", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_name hf_model_names[] = {
    {"embeddings.word_embeddings", "token_embd", NULL},
    {"embeddings.position_embeddings", "position_embd", NULL},
    {"embeddings.LayerNorm", "token_embd_norm", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"sinusoidal_pos_embds", QKV_HF_SKIP, NULL, 0},
    {"tie_weights_", QKV_HF_SKIP, NULL, 0},
    {"dropout", QKV_HF_SKIP, NULL, 0},
    {"qa_dropout", QKV_HF_SKIP, NULL, 0},
    {"seq_classif_dropout", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

/* Heads that predict words, labels or answers; the model's output is what they read. */
static const char *const hf_ignored[] = {
    "vocab_transform.weight",
    "vocab_transform.bias",
    "vocab_layer_norm.weight",
    "vocab_layer_norm.bias",
    "vocab_projector.weight",
    "vocab_projector.bias",
    "pre_classifier.weight",
    "pre_classifier.bias",
    "classifier.weight",
    "classifier.bias",
    "qa_outputs.weight",
    "qa_outputs.bias",
    NULL,
};

static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    (void)err;
    gguf_set_val_u32(config->meta, "tokenizer.ggml.token_type_count", 1);
    qkv_hf_set_bool(config, "attention.causal", 0);
    return QKV_OK;
}

static const qkv_hf_class hf_classes[] = {
    {"distilbert", "DistilBertModel", "{\"activation\": \"gelu\"}", NULL},
    {NULL, NULL, NULL, NULL},
};

const qkv_hf qkv_hf_distilbert = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .prefix = "distilbert.",
    .block = "transformer.layer.",
    .activation = "activation",
    .fixed_epsilon = 1e-12,
    .layer_names = hf_layer_names,
    .model_names = hf_model_names,
    .settings = hf_settings,
    .ignored = hf_ignored,
    .configure = hf_configure,
    .plain_names = 1,
    .plain_output = 1,
};
