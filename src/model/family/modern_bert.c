/*
 * modern-bert: ModernBERT, bidirectional.
 *
 * LayerNorm before the blocks, after the last one, and on the embeddings, which the first attention reads
 * as they are. RoPE; every third layer, the first included, sees everything, the others see half of the
 * window on either side of a query and turn by a base of their own. Gate and up are one matrix, gate
 * first, with GELU in its exact form. Biases where the settings ask for them. There are no logits: the
 * output is final_norm.
 */
#include "model/hf/hf.h"

static const qkv_slot_override fused_gate[] = {
    {QKV_LAYER_UP, NULL, "DW"}, {QKV_LAYER_UP_BIAS, NULL, "W"}, {-1, NULL, NULL}};

static const char *const hf_architectures[] = {"ModernBertModel",
                                               "ModernBertForMaskedLM",
                                               "ModernBertForSequenceClassification",
                                               "ModernBertForTokenClassification",
                                               "ModernBertForMultipleChoice",
                                               "ModernBertForQuestionAnswering",
                                               NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"attn_norm", "attn_norm", NULL},
    {"attn.Wqkv", "attn_qkv", NULL},
    {"attn.Wo", "attn_output", NULL},
    {"mlp_norm", "ffn_norm", NULL},
    {"mlp.Wi", "ffn_up", NULL},
    {"mlp.Wo", "ffn_down", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_name hf_model_names[] = {
    {"embeddings.tok_embeddings", "token_embd", NULL},
    {"embeddings.norm", "token_embd_norm", NULL},
    {"final_norm", "output_norm", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"gelu", QKV_HF_TEXT, "hidden_activation", 0},
    {"none", QKV_HF_TEXT, "rope.scaling.type", 0},
    {"classifier_activation", QKV_HF_SKIP, NULL, 0},
    {"classifier_bias", QKV_HF_SKIP, NULL, 0},
    {"classifier_pooling", QKV_HF_SKIP, NULL, 0},
    {"compile_model", QKV_HF_SKIP, NULL, 0},
    {"decoder_bias", QKV_HF_SKIP, NULL, 0},
    {"deterministic_flash_attn", QKV_HF_SKIP, NULL, 0},
    {"initializer_cutoff_factor", QKV_HF_SKIP, NULL, 0},
    {"layer_norm_eps", QKV_HF_SKIP, NULL, 0},
    {"mlp_dropout", QKV_HF_SKIP, NULL, 0},
    {"norm_bias", QKV_HF_SKIP, NULL, 0},
    {"position_embedding_type", QKV_HF_SKIP, NULL, 0},
    {"reference_compile", QKV_HF_SKIP, NULL, 0},
    {"repad_logits_with_grad", QKV_HF_SKIP, NULL, 0},
    {"sparse_pred_ignore_index", QKV_HF_SKIP, NULL, 0},
    {"sparse_prediction", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

/* Heads that predict words, labels or answers; the model's output is what they read. */
static const char *const hf_ignored[] = {
    "head.dense.weight", "head.dense.bias",   "head.norm.weight",  "head.norm.bias",
    "decoder.weight",    "decoder.bias",      "classifier.weight", "classifier.bias",
    "lm_head.weight",    "qa_outputs.weight", "qa_outputs.bias",   NULL,
};

static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    const json_t *period = json_object_get(config->settings, "global_attn_every_n_layers");
    (void)err;
    qkv_hf_set_bool(config, "attention.causal", 0);
    if (json_is_integer(period)) /* read with the window, which replaces it where layers differ */
        qkv_hf_set_int(config, "attention.sliding_window_pattern", json_integer_value(period));
    return QKV_OK;
}

static const qkv_hf_class hf_classes[] = {
    {"modernbert", "ModernBertModel",
     "{\"norm_eps\": 1e-5, \"hidden_activation\": \"gelu\", \"local_attention\": 128,"
     " \"global_attn_every_n_layers\": 3, \"global_rope_theta\": 160000.0,"
     " \"local_rope_theta\": 10000.0}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .activation = "hidden_activation",
    .epsilon = "norm_eps",
    .rope_base = "global_rope_theta",
    .local_base = "local_rope_theta",
    .layer_names = hf_layer_names,
    .model_names = hf_model_names,
    .settings = hf_settings,
    .ignored = hf_ignored,
    .configure = hf_configure,
    .window = QKV_HF_WINDOW_LOCAL | QKV_HF_WINDOW_TYPES,
    .plain_names = 1,
    .plain_output = 1,
};

const qkv_family qkv_family_modern_bert = {
    .name = "modern-bert",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_GELU_ERF,
    .mlp = QKV_MLP_GATED_FUSED,
    .bidirectional = 1,
    .has_no_logits = 1,
    .window_period = 3,
    .full_layer_first = 1,
    .window_both_sides = 1,
    .first_unnormed = 1,
    .local_rope = 1,
    .local_base = 10000,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS(QKV) | QKV_HAS(O) | QKV_HAS(FFN_NORM) |
                      QKV_HAS(UP) | QKV_HAS(DOWN),
    .layer_optional = QKV_HAS_NORM_BIASES | QKV_HAS(QKV_BIAS) | QKV_HAS(O_BIAS) | QKV_HAS(UP_BIAS) |
                      QKV_HAS(DOWN_BIAS),
    .model_required =
        QKV_HAS_MODEL(TOKEN_EMBD) | QKV_HAS_MODEL(EMBD_NORM) | QKV_HAS_MODEL(OUTPUT_NORM),
    .model_optional = QKV_HAS_MODEL(EMBD_NORM_BIAS) | QKV_HAS_MODEL(OUTPUT_NORM_BIAS),
    .overrides = fused_gate,
    .hf = &hf,
};
