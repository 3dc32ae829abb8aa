/*
 * codegen: CodeGen.
 *
 * As gptj, with one matrix for queries, keys and values. Its rows are four blocks, each with a quarter of
 * the queries, of the values and of the keys, in this order: four machines had one each. They are put into
 * the order of other fused matrices. GGUF has no such architecture.
 */
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"CodeGenForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"ln_1", "attn_norm", NULL},
    {"attn.qkv_proj", "attn_qkv", &qkv_maker_from_quarters},
    {"attn.out_proj", "attn_output", NULL},
    {"mlp.fc_in", "ffn_up", NULL},
    {"mlp.fc_out", "ffn_down", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_name hf_model_names[] = {
    {"wte", "token_embd", NULL},
    {"ln_f", "output_norm", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"scale_attn_weights", QKV_HF_MUST, NULL, 1},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

/* The causal mask, which old versions saved. */
static const char *const hf_ignored[] = {".attn.causal_mask", ".attn.bias", ".attn.masked_bias",
                                         NULL};

static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    if (config->n_head % 4 == 0) return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT,
                    "%s: n_head is %lld; the heads of CodeGen lie in four blocks, so it must be a "
                    "multiple of 4",
                    config->path, (long long)config->n_head);
}

static const qkv_hf_class hf_classes[] = {
    {"codegen", "CodeGenForCausalLM",
     "{\"n_positions\": 2048, \"rotary_dim\": 64, \"layer_norm_epsilon\": 1e-5, "
     "\"tie_word_embeddings\": false}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .prefix = "transformer.",
    .block = "h.",
    .activation = "activation_function",
    .epsilon = "layer_norm_epsilon",
    .layer_names = hf_layer_names,
    .model_names = hf_model_names,
    .settings = hf_settings,
    .ignored = hf_ignored,
    .configure = hf_configure,
    .plain_names = 1,
    .rotary_dim = 1,
};

const qkv_family qkv_family_codegen = {
    .name = "codegen",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_ADJACENT,
    .activation = QKV_ACT_GELU_TANH,
    .parallel = 1,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS(ATTN_NORM_BIAS) | QKV_HAS(QKV) | QKV_HAS(O) |
                      QKV_HAS_PLAIN_MLP,
    .model_required =
        QKV_HAS_MODEL_ENDS | QKV_HAS_MODEL(OUTPUT_NORM_BIAS) | QKV_HAS_MODEL(OUTPUT_BIAS),
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .hf = &hf,
};
