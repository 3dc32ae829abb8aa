/*
 * gpt-oss: gpt-oss 20B and 120B.
 *
 * A learned sink per head takes part in the softmax and is dropped, so that rows of the pattern sum to
 * less than 1. Biases everywhere in attention, a window in every other layer, the first included.
 * Experts with biases in place of the feed-forward: the best k, a softmax over their scores, and a
 * clamped SwiGLU. The norm before them is called post_attention_norm. YaRN leaves its range
 * unrounded (rope.scaling.yarn_truncate).
 */
#include <string.h>

#include "model/hf/hf.h"

static const qkv_slot_override norm_name[] = {
    {QKV_LAYER_FFN_NORM, "post_attention_norm.weight", NULL}, {-1, NULL, NULL}};

static const char *const hf_architectures[] = {"GptOssForCausalLM", NULL};

/* Columns of gate and up alternate; matrices are the other way round. As published, they are MXFP4,
 * row by row. */
static const qkv_hf_name hf_layer_names[] = {
    {"post_attention_layernorm", "post_attention_norm", NULL},
    {"self_attn.sinks", "attn_sinks.weight", NULL},
    {"mlp.router", "ffn_gate_inp", NULL},
    {"mlp.experts.gate_up_proj", "ffn_gate_exps.weight", &qkv_maker_even_columns},
    {"mlp.experts.gate_up_proj_bias", "ffn_gate_exps.bias", &qkv_maker_even_columns},
    {"mlp.experts.gate_up_proj", "ffn_up_exps.weight", &qkv_maker_odd_columns},
    {"mlp.experts.gate_up_proj_bias", "ffn_up_exps.bias", &qkv_maker_odd_columns},
    {"mlp.experts.down_proj", "ffn_down_exps.weight", &qkv_maker_transpose},
    {"mlp.experts.down_proj_bias", "ffn_down_exps.bias", NULL},
    {"mlp.experts.gate_up_proj_{blocks,scales}", "ffn_gate_exps.weight", &qkv_maker_mxfp4_even},
    {"mlp.experts.gate_up_proj_{blocks,scales}", "ffn_up_exps.weight", &qkv_maker_mxfp4_odd},
    {"mlp.experts.down_proj_{blocks,scales}", "ffn_down_exps.weight", &qkv_maker_mxfp4},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"swiglu_limit", QKV_HF_MUST, NULL, 7},
    {"swiglu_alpha", QKV_HF_MUST, NULL, 1.702},
    {"experts_per_token", QKV_HF_SKIP, NULL, 0},
    {"initial_context_length", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    json_t *stored = qkv_hf_take(config, "quantization_config");
    const char *method = json_string_value(json_object_get(stored, "quant_method"));
    const int known = !stored || (method && strcmp(method, "mxfp4") == 0);
    json_decref(stored);
    if (!known)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: the weights are quantised; MXFP4 alone is supported", config->path);
    qkv_hf_set_int(config, "expert_feed_forward_length", config->n_ff);
    return QKV_OK;
}

static const qkv_hf_class hf_classes[] = {
    {"gpt_oss", "GptOssForCausalLM",
     "{\"rms_norm_eps\": 1e-5, \"rope_theta\": 150000.0, \"head_dim\": 64, \"sliding_window\": 128,"
     " \"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 32.0, \"truncate\": false,"
     " \"original_max_position_embeddings\": 4096}}",
     NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .settings = hf_settings,
    .fixed_activation = 1,
    .window = QKV_HF_WINDOW | QKV_HF_WINDOW_TYPES,
    .configure = hf_configure,
};

const qkv_family qkv_family_gpt_oss = {
    .name = "gpt-oss",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SWIGLU_CLAMPED,
    .mlp = QKV_MLP_GATED,
    .window_period = 2,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS_HEAD_BIASES |
                      QKV_HAS(SINKS) | QKV_HAS(O) | QKV_HAS(O_BIAS) | QKV_HAS(FFN_NORM) |
                      QKV_HAS_EXPERTS | QKV_HAS(ROUTER_BIAS) | QKV_HAS(GATE_EXPERTS_BIAS) |
                      QKV_HAS(UP_EXPERTS_BIAS) | QKV_HAS(DOWN_EXPERTS_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(EXPERTS),
    .overrides = norm_name,
    .hf = &hf,
};
