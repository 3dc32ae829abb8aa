/*
 * eurobert: EuroBERT, bidirectional.
 *
 * As llama, with RoPE on halves and without the causal mask. Biases where the settings ask for them. There
 * are no logits: the output is final_norm.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"EuroBertModel", "EuroBertForMaskedLM",
                                               "EuroBertForSequenceClassification",
                                               "EuroBertForTokenClassification", NULL};

static const qkv_hf_setting hf_settings[] = {
    {"none", QKV_HF_TEXT, "rope.scaling.type", 0},
    {"classifier_pooling", QKV_HF_SKIP, NULL, 0},
    {"clf_pooling", QKV_HF_SKIP, NULL, 0},
    {"bos_token", QKV_HF_SKIP, NULL, 0}, /* the tokenizer says which */
    {"eos_token", QKV_HF_SKIP, NULL, 0},
    {"mask_token", QKV_HF_SKIP, NULL, 0},
    {"pad_token", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

/* Heads that predict words or labels; the model's output is what they read. */
static const char *const hf_ignored[] = {
    "lm_head.weight",    "lm_head.bias",    "dense.weight", "dense.bias",
    "classifier.weight", "classifier.bias", NULL,
};

static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    (void)err;
    qkv_hf_set_bool(config, "attention.causal", 0);
    return QKV_OK;
}

static const qkv_hf_class hf_classes[] = {
    {"eurobert", "EuroBertModel", "{\"rms_norm_eps\": 1e-5}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .settings = hf_settings,
    .ignored = hf_ignored,
    .configure = hf_configure,
    .plain_output = 1,
};

const qkv_family qkv_family_eurobert = {
    .name = "eurobert",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .bidirectional = 1,
    .has_no_logits = 1,
    .layer_required = QKV_HAS_LLAMA_LAYER,
    .layer_optional = QKV_HAS_HEAD_BIASES | QKV_HAS(O_BIAS) | QKV_HAS(GATE_BIAS) |
                      QKV_HAS(UP_BIAS) | QKV_HAS(DOWN_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional =
        QKV_HAS_MODEL(ROPE_FREQS) | QKV_HAS_MODEL(ROPE_LONG) | QKV_HAS_MODEL(ROPE_SHORT),
    .hf = &hf,
};
