/*
 * bert: BERT, RoBERTa, XLM-RoBERTa and DistilBERT, bidirectional.
 *
 * Every token sees every other one. LayerNorm after each residual addition and on the embeddings, to
 * which learned positions and segments are added: the second segment begins after the first separator.
 * Biases everywhere; GELU in its exact form. There are no logits: the output is the last layer's
 * resid_post.
 *
 * The others are the same model with other directories (bert_roberta.c, bert_distil.c): DistilBERT has no
 * segments, and the first positions of RoBERTa's table are not used.
 */
#include "model/family/bert.h"

static const char *const hf_architectures[] = {"BertModel",
                                               "BertForMaskedLM",
                                               "BertForPreTraining",
                                               "BertForNextSentencePrediction",
                                               "BertForSequenceClassification",
                                               "BertForTokenClassification",
                                               "BertForMultipleChoice",
                                               "BertForQuestionAnswering",
                                               NULL};

/* Norms were once called gamma and beta. */
const qkv_hf_name qkv_bert_layer_names[] = {
    {"attention.self.query", "attn_q", NULL},
    {"attention.self.key", "attn_k", NULL},
    {"attention.self.value", "attn_v", NULL},
    {"attention.output.dense", "attn_output", NULL},
    {"attention.output.LayerNorm", "attn_output_norm", NULL},
    {"attention.output.LayerNorm.gamma", "attn_output_norm.weight", NULL},
    {"attention.output.LayerNorm.beta", "attn_output_norm.bias", NULL},
    {"intermediate.dense", "ffn_up", NULL},
    {"output.dense", "ffn_down", NULL},
    {"output.LayerNorm", "layer_output_norm", NULL},
    {"output.LayerNorm.gamma", "layer_output_norm.weight", NULL},
    {"output.LayerNorm.beta", "layer_output_norm.bias", NULL},
    {NULL, NULL, NULL},
};

const qkv_hf_name qkv_bert_model_names[] = {
    {"embeddings.word_embeddings", "token_embd", NULL},
    {"embeddings.position_embeddings", "position_embd", NULL},
    {"embeddings.token_type_embeddings", "token_types", NULL},
    {"embeddings.LayerNorm", "token_embd_norm", NULL},
    {"embeddings.LayerNorm.gamma", "token_embd_norm.weight", NULL},
    {"embeddings.LayerNorm.beta", "token_embd_norm.bias", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"is_decoder", QKV_HF_MUST, NULL, 0},
    {"add_cross_attention", QKV_HF_MUST, NULL, 0},
    {"position_embedding_type", QKV_HF_WORD, "absolute", 0},
    {"directionality", QKV_HF_WORD, "bidi", 0},
    {"pooler_fc_size", QKV_HF_SKIP, NULL, 0},
    {"pooler_num_attention_heads", QKV_HF_SKIP, NULL, 0},
    {"pooler_num_fc_layers", QKV_HF_SKIP, NULL, 0},
    {"pooler_size_per_head", QKV_HF_SKIP, NULL, 0},
    {"pooler_type", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

/* Heads that predict words, sentences, labels or answers; the model's output is what they read. */
static const char *const hf_ignored[] = {
    "pooler.dense.weight",
    "pooler.dense.bias",
    "cls.predictions.bias",
    "cls.predictions.decoder.weight",
    "cls.predictions.decoder.bias",
    "cls.predictions.transform.dense.weight",
    "cls.predictions.transform.dense.bias",
    "cls.predictions.transform.LayerNorm.weight",
    "cls.predictions.transform.LayerNorm.bias",
    "cls.predictions.transform.LayerNorm.gamma",
    "cls.predictions.transform.LayerNorm.beta",
    "cls.seq_relationship.weight",
    "cls.seq_relationship.bias",
    "classifier.weight",
    "classifier.bias",
    "qa_outputs.weight",
    "qa_outputs.bias",
    NULL,
};

int qkv_bert_configure(qkv_hf_config *config, qkv_error *err) {
    int64_t n_types = 2;
    const int found = qkv_hf_take_int(config, "type_vocab_size", 1, 1 << 20, &n_types, err);
    if (found < 0) return found;
    gguf_set_val_u32(config->meta, "tokenizer.ggml.token_type_count", (uint32_t)n_types);
    qkv_hf_set_bool(config, "attention.causal", 0);
    return QKV_OK;
}

static const qkv_hf_class hf_classes[] = {
    {"bert", "BertModel", "{\"layer_norm_eps\": 1e-12}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .next = &qkv_hf_roberta,
    .architectures = hf_architectures,
    .classes = hf_classes,
    .prefix = "bert.",
    .block = "encoder.layer.",
    .layer_names = qkv_bert_layer_names,
    .model_names = qkv_bert_model_names,
    .settings = hf_settings,
    .ignored = hf_ignored,
    .configure = qkv_bert_configure,
    .plain_names = 1,
    .plain_output = 1,
};

const qkv_family qkv_family_bert = {
    .name = "bert",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_LEARNED,
    .activation = QKV_ACT_GELU_ERF,
    .bidirectional = 1,
    .has_no_logits = 1,
    .layer_required = QKV_HAS_SPLIT_HEADS | QKV_HAS_HEAD_BIASES | QKV_HAS(O) | QKV_HAS(O_BIAS) |
                      QKV_HAS(ATTN_OUT_NORM) | QKV_HAS(ATTN_OUT_NORM_BIAS) | QKV_HAS_PLAIN_MLP |
                      QKV_HAS(LAYER_OUT_NORM) | QKV_HAS(LAYER_OUT_NORM_BIAS),
    .layer_optional = QKV_HAS(QKV) | QKV_HAS(QKV_BIAS),
    .model_required = QKV_HAS_MODEL(TOKEN_EMBD) | QKV_HAS_MODEL(POSITION_EMBD) |
                      QKV_HAS_MODEL(EMBD_NORM) | QKV_HAS_MODEL(EMBD_NORM_BIAS),
    .model_optional = QKV_HAS_MODEL(TOKEN_TYPES),
    .hf = &hf,
};
