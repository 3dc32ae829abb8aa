/*
 * gemma4: Gemma 4.
 *
 * Layers with a window and layers that see everything differ in the width of heads and in the number of
 * key/value heads. Queries and keys are RMS-normalised per head with weights, values without; scores are not
 * scaled. Layers that see everything turn the first pairs of a head alone: the file divides the frequencies
 * of the others by 1e30. Where such a layer has no W_v, values are made by W_k. The last layers may use the
 * keys and values of earlier ones. Layers may have embeddings of their own (run/graph/own_embedding.c), and
 * end with a factor.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"Gemma4ForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"post_attention_layernorm", "post_attention_norm", NULL},
    {"pre_feedforward_layernorm", "ffn_norm", NULL},
    {"post_feedforward_layernorm", "post_ffw_norm", NULL},
    {"layer_scalar", "layer_output_scale.weight", NULL},
    {"per_layer_input_gate.weight", "inp_gate.weight", NULL},
    {"per_layer_projection.weight", "proj.weight", NULL},
    {"post_per_layer_input_norm.weight", "post_norm.weight", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_name hf_model_names[] = {
    {"embed_tokens_per_layer.weight", "per_layer_token_embd.weight", NULL},
    {"per_layer_model_projection.weight", "per_layer_model_proj.weight", NULL},
    {"per_layer_projection_norm.weight", "per_layer_proj_norm.weight", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"final_logit_softcapping", QKV_HF_FLOAT, "final_logit_softcapping", 0},
    {"hidden_size_per_layer_input", QKV_HF_INT, "embedding_length_per_layer_input", 0},
    {"vocab_size_per_layer_input", QKV_HF_SKIP, NULL, 0},
    {"use_bidirectional_attention", QKV_HF_WORD, "vision", 0}, /* of images: text is causal */
    {"per_layer_config", QKV_HF_REFUSE, NULL, 0},
    {"enable_moe_block", QKV_HF_REFUSE, NULL, 0},
    {"moe_intermediate_size", QKV_HF_SKIP, NULL, 0},
    {"num_experts", QKV_HF_SKIP, NULL, 0},
    {"top_k_experts", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

/* Does the layer see everything? As layer_types says, else every sixth does; the last one always. */
static int sees_all(const qkv_hf_config *config, int64_t il) {
    const json_t *types = json_object_get(config->settings, "layer_types");
    const char *type = json_string_value(json_array_get(types, (size_t)il));
    if (il == config->n_layer - 1) return 1;
    return type ? strcmp(type, "full_attention") == 0 : (il + 1) % 6 == 0;
}

/* Key/value heads; those of full layers are others where they have no W_v. */
static int write_groups(qkv_hf_config *config, qkv_error *err) {
    int64_t groups = config->n_kv_head;
    int k_eq_v = 0;
    int found = qkv_hf_take_int(config, "num_global_key_value_heads", 1, 4096, &groups, err);
    if (found >= 0) found = qkv_hf_take_bool(config, "attention_k_eq_v", &k_eq_v, err);
    if (found < 0) return found;
    if (!k_eq_v || groups == config->n_kv_head) return QKV_OK;
    int32_t *each = qkv_calloc((size_t)config->n_layer, sizeof *each);
    if (!each) return qkv_fail_memory(err);
    for (int64_t il = 0; il < config->n_layer; il++)
        each[il] = (int32_t)(sees_all(config, il) ? groups : config->n_kv_head);
    qkv_hf_set_layers(config, "attention.head_count_kv", each);
    free(each);
    return QKV_OK;
}

/* Layers that share keys and values may have a wider feed-forward. */
static int write_sharing(qkv_hf_config *config, qkv_error *err) {
    int64_t shared = 0;
    int wide = 0;
    int found =
        qkv_hf_take_int(config, "num_kv_shared_layers", 0, config->n_layer - 1, &shared, err);
    if (found >= 0) found = qkv_hf_take_bool(config, "use_double_wide_mlp", &wide, err);
    if (found < 0) return found;
    qkv_hf_set_int(config, "attention.shared_kv_layers", shared);
    if (!wide || !shared) return QKV_OK;
    int32_t *each = qkv_calloc((size_t)config->n_layer, sizeof *each);
    if (!each) return qkv_fail_memory(err);
    for (int64_t il = 0; il < config->n_layer; il++)
        each[il] = (int32_t)(config->n_ff * (il < config->n_layer - shared ? 1 : 2));
    qkv_hf_set_layers(config, "feed_forward_length", each);
    free(each);
    return QKV_OK;
}

static int configure(qkv_hf_config *config, qkv_error *err) {
    qkv_hf_set_int(config, "attention.key_length", config->full_head_dim);
    qkv_hf_set_int(config, "attention.value_length", config->full_head_dim);
    qkv_hf_set_int(config, "attention.key_length_swa", config->head_dim);
    qkv_hf_set_int(config, "attention.value_length_swa", config->head_dim);
    const int status = write_groups(config, err);
    return status == QKV_OK ? write_sharing(config, err) : status;
}

#define ROPE_DEFAULTS                                                                              \
    " \"rope_parameters\": {\"sliding_attention\": {\"rope_type\": \"default\","                   \
    " \"rope_theta\": 10000.0}, \"full_attention\": {\"rope_type\": \"proportional\","             \
    " \"partial_rotary_factor\": 0.25, \"rope_theta\": 1000000.0}}"

static const qkv_hf_class hf_classes[] = {
    {"gemma4_text", "Gemma4ForCausalLM",
     "{\"rms_norm_eps\": 1e-6, \"head_dim\": 256, \"global_head_dim\": 512,"
     " \"num_key_value_heads\": 4, \"sliding_window\": 512, \"max_position_embeddings\": 131072,"
     " \"hidden_size_per_layer_input\": 256, \"tie_word_embeddings\": true," ROPE_DEFAULTS "}",
     "{\"hidden_size\": 2304, \"intermediate_size\": 9216, \"num_hidden_layers\": 30,"
     " \"num_attention_heads\": 8}"},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .activation = "hidden_activation",
    .layer_names = hf_layer_names,
    .model_names = hf_model_names,
    .settings = hf_settings,
    .window = QKV_HF_WINDOW | QKV_HF_WINDOW_TYPES,
    .last_sees_all = 1,
    .writes_window_layers = 1,
    .configure = configure,
};

const qkv_family qkv_family_gemma4 = {
    .name = "gemma4",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_GELU_TANH,
    .mlp = QKV_MLP_GATED,
    .embedding_sqrt = 1,
    .window_period = 6,
    .local_rope = 1,
    .local_base = 10000,
    .proportional_rope = 1,
    .unscaled = 1,
    .layer_ones = QKV_HAS(V_NORM),
    .layer_required = (QKV_HAS_LLAMA_LAYER & ~QKV_HAS(V)) | QKV_HAS_HEAD_NORMS |
                      QKV_HAS(POST_ATTN_NORM) | QKV_HAS(POST_FFN_NORM) | QKV_HAS(LAYER_SCALE),
    .layer_optional = QKV_HAS(V) | QKV_HAS(OWN_GATE) | QKV_HAS(OWN_PROJ) | QKV_HAS(OWN_NORM),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT) | QKV_HAS_MODEL(ROPE_FREQS) | QKV_HAS_MODEL(OWN_EMBD) |
                      QKV_HAS_MODEL(OWN_MODEL_PROJ) | QKV_HAS_MODEL(OWN_MODEL_NORM),
    .keys = QKV_READS(ATTN_SCALE) | QKV_READS(LOGIT_SOFTCAP) | QKV_READS(SHARED_KV) |
            QKV_READS(OWN_EMBEDDINGS),
    .hf = &hf,
};
