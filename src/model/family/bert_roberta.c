/*
 * RoBERTa and XLM-RoBERTa, which are BERT in all that is computed.
 *
 * Positions begin after the number of the padding token: the rows before it are left out, as in GGUF files.
 * There is one segment. transformers gives padding tokens inside a prompt no position of their own; no
 * tokenizer puts them there, and here they have one.
 */
#include "model/family/bert.h"

static const char *const hf_architectures[] = {"RobertaModel",
                                               "RobertaForMaskedLM",
                                               "RobertaForSequenceClassification",
                                               "RobertaForTokenClassification",
                                               "RobertaForMultipleChoice",
                                               "RobertaForQuestionAnswering",
                                               "XLMRobertaModel",
                                               "XLMRobertaForMaskedLM",
                                               "XLMRobertaForSequenceClassification",
                                               "XLMRobertaForTokenClassification",
                                               "XLMRobertaForMultipleChoice",
                                               "XLMRobertaForQuestionAnswering",
                                               NULL};

static const qkv_hf_name hf_model_names[] = {
    {"embeddings.word_embeddings", "token_embd", NULL},
    {"embeddings.position_embeddings", "position_embd", &qkv_maker_skip_rows},
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
    {NULL, QKV_HF_SKIP, NULL, 0},
};

/* Heads that predict words, labels or answers; the model's output is what they read. */
static const char *const hf_ignored[] = {
    "pooler.dense.weight",
    "pooler.dense.bias",
    "lm_head.weight",
    "lm_head.bias",
    "lm_head.dense.weight",
    "lm_head.dense.bias",
    "lm_head.layer_norm.weight",
    "lm_head.layer_norm.bias",
    "lm_head.decoder.weight",
    "lm_head.decoder.bias",
    "classifier.weight",
    "classifier.bias",
    "classifier.dense.weight",
    "classifier.dense.bias",
    "classifier.out_proj.weight",
    "classifier.out_proj.bias",
    "qa_outputs.weight",
    "qa_outputs.bias",
    NULL,
};

static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    int64_t padding = 0;
    const int found = qkv_hf_take_int(config, "pad_token_id", 0, config->n_ctx - 2, &padding, err);
    if (found < 0) return found;
    if (!found)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: no pad_token_id, after which positions begin",
                        config->path);
    config->first_position = padding + 1;
    config->n_ctx -= config->first_position;
    qkv_hf_set_int(config, "context_length", config->n_ctx);
    return qkv_bert_configure(config, err);
}

static const qkv_hf_class hf_classes[] = {
    {"roberta", "RobertaModel", "{\"layer_norm_eps\": 1e-12, \"pad_token_id\": 1}", NULL},
    {"xlm-roberta", "XLMRobertaModel", "{\"layer_norm_eps\": 1e-12, \"pad_token_id\": 1}", NULL},
    {NULL, NULL, NULL, NULL},
};

const qkv_hf qkv_hf_roberta = {
    .next = &qkv_hf_distilbert,
    .architectures = hf_architectures,
    .classes = hf_classes,
    .prefix = "roberta.",
    .block = "encoder.layer.",
    .layer_names = qkv_bert_layer_names,
    .model_names = hf_model_names,
    .settings = hf_settings,
    .ignored = hf_ignored,
    .configure = hf_configure,
    .plain_names = 1,
    .plain_output = 1,
};
