/*
 * llama4: Llama 4.
 *
 * Every fourth layer sees everything, does not turn, and its queries have a temperature. In the others a query
 * sees the keys of its own chunk of the text up to itself, adjacent channels turn, and queries and keys are
 * L2-normalised without weights: after RoPE as published, before it here, which is the same because RoPE keeps
 * lengths; so q and k are what the norm gives. Experts in every n-th layer: the sigmoid of the best score
 * multiplies what the expert reads, and a shared expert is added.
 *
 * GGUF files have no keys for the chunk, the temperature and the norm: they are 8192, 0.1 and 8192, and there
 * unless there are 128 experts. `qkv convert` writes keys where a model has others.
 */
#include <string.h>

#include "model/hf/hf.h"

enum { CHUNK = 8192, STEP = 8192, EXPERTS_WITHOUT_NORM = 128 };

static const char *const hf_architectures[] = {"Llama4ForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"feed_forward.gate_proj", "ffn_gate", NULL},
    {"feed_forward.up_proj", "ffn_up", NULL},
    {"feed_forward.down_proj", "ffn_down", NULL},
    {"feed_forward.router.weight", "ffn_gate_inp.weight", NULL},
    {"feed_forward.experts.gate_up_proj", "ffn_gate_exps.weight", &qkv_maker_first_columns},
    {"feed_forward.experts.gate_up_proj", "ffn_up_exps.weight", &qkv_maker_second_columns},
    {"feed_forward.experts.down_proj", "ffn_down_exps.weight", &qkv_maker_transpose},
    {"feed_forward.shared_expert.gate_proj.weight", "ffn_gate_shexp.weight", NULL},
    {"feed_forward.shared_expert.up_proj.weight", "ffn_up_shexp.weight", NULL},
    {"feed_forward.shared_expert.down_proj.weight", "ffn_down_shexp.weight", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"interleave_moe_layer_step", QKV_HF_INT, "interleave_moe_layer_step", 0},
    {"for_llm_compression", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

/* ---- layers ---- */

static int fail_layers(const qkv_hf_config *config, const char *name, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "%s: only models in which every 4th layer sees everything and has no RoPE are "
                    "supported; %s says otherwise",
                    config->path, name);
}

static int check_interval(qkv_hf_config *config, qkv_error *err) {
    const int64_t period = config->family->rope_skip_period;
    int64_t interval = period;
    const int found = qkv_hf_take_int(config, "no_rope_layer_interval", 0, 4096, &interval, err);
    if (found < 0) return found;
    json_t *list = qkv_hf_take(config, "no_rope_layers");
    int usual = json_array_size(list) > 0 || interval == period;
    for (size_t il = 0; json_array_size(list) > 0 && il < (size_t)config->n_layer; il++) {
        const json_int_t turns = json_integer_value(json_array_get(list, il));
        usual &= (turns != 0) == ((int64_t)(il + 1) % period != 0);
    }
    json_decref(list);
    return usual ? QKV_OK : fail_layers(config, "no_rope_layers", err);
}

static int check_types(qkv_hf_config *config, qkv_error *err) {
    json_t *list = qkv_hf_take(config, "layer_types");
    int usual = 1;
    for (size_t il = 0; list && il < (size_t)config->n_layer; il++) {
        const char *type = json_string_value(json_array_get(list, il));
        const int is_full = (il + 1) % (size_t)config->family->rope_skip_period == 0;
        usual &= type && strcmp(type, is_full ? "full_attention" : "chunked_attention") == 0;
    }
    json_decref(list);
    return usual ? QKV_OK : fail_layers(config, "layer_types", err);
}

/* moe_layers lists what the step says. */
static int check_experts(qkv_hf_config *config, qkv_error *err) {
    json_t *list = qkv_hf_take(config, "moe_layers");
    const int64_t key = gguf_find_key(config->meta, "llama4.interleave_moe_layer_step");
    const uint32_t step = key < 0 ? 1 : gguf_get_val_u32(config->meta, key);
    int usual = step > 0 && (!list || json_array_size(list) == (size_t)config->n_layer / step);
    for (size_t i = 0; i < json_array_size(list) && usual; i++)
        usual =
            json_integer_value(json_array_get(list, i)) == (json_int_t)((i + 1) * (size_t)step - 1);
    json_decref(list);
    if (usual) return QKV_OK;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "%s: experts are supported in every n-th layer, as interleave_moe_layer_step "
                    "says; moe_layers says otherwise",
                    config->path);
}

/* ---- numbers that files leave out ---- */

static int write_chunk(qkv_hf_config *config, qkv_error *err) {
    int64_t chunk = 0;
    const int found = qkv_hf_take_int(config, "attention_chunk_size", 1, 1 << 30, &chunk, err);
    if (found < 0) return found;
    if (!found)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: no attention_chunk_size is not supported",
                        config->path);
    if (chunk != CHUNK) qkv_hf_set_int(config, "attention.chunk_size", chunk);
    return QKV_OK;
}

static int write_temperature(qkv_hf_config *config, qkv_error *err) {
    double scale = 0.1;
    int64_t step = STEP;
    json_t *tuned = qkv_hf_take(config, "attn_temperature_tuning");
    const int has = tuned && !qkv_hf_says_nothing(tuned);
    json_decref(tuned);
    int found = qkv_hf_take_float(config, "attn_scale", 0, 1e6, &scale, err);
    if (found >= 0) found = qkv_hf_take_int(config, "floor_scale", 1, 1 << 30, &step, err);
    if (found < 0) return found;
    if (!has) scale = 0;
    if (scale != 0.1) qkv_hf_set_float(config, "attention.temperature_scale", scale);
    if (step != STEP) qkv_hf_set_int(config, "attention.temperature_length", step);
    return QKV_OK;
}

static int write_norm(qkv_hf_config *config, qkv_error *err) {
    const int64_t key = gguf_find_key(config->meta, "llama4.expert_count");
    const int usual = key < 0 || gguf_get_val_u32(config->meta, key) != EXPERTS_WITHOUT_NORM;
    int normed = 1;
    const int found = qkv_hf_take_bool(config, "use_qk_norm", &normed, err);
    if (found < 0) return found;
    if (normed != usual) qkv_hf_set_bool(config, "attention.head_norms", normed);
    return QKV_OK;
}

/* What experts are wide is called intermediate_size, the others are intermediate_size_mlp wide. */
static int write_widths(qkv_hf_config *config, qkv_error *err) {
    int64_t dense = 0;
    const int found = qkv_hf_take_int(config, "intermediate_size_mlp", 1, 1 << 20, &dense, err);
    if (found < 0) return found;
    qkv_hf_set_int(config, "expert_feed_forward_length", config->n_ff);
    config->n_ff = dense;
    qkv_hf_set_int(config, "feed_forward_length", dense);
    return QKV_OK;
}

static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    int status = check_interval(config, err);
    if (status == QKV_OK) status = check_types(config, err);
    if (status == QKV_OK) status = check_experts(config, err);
    if (status == QKV_OK) status = write_chunk(config, err);
    if (status == QKV_OK) status = write_temperature(config, err);
    if (status == QKV_OK) status = write_norm(config, err);
    return status == QKV_OK ? write_widths(config, err) : status;
}

#define DEFAULTS                                                                                   \
    "{\"rms_norm_eps\": 1e-5, \"rope_theta\": 500000.0, \"head_dim\": 128,"                        \
    " \"num_key_value_heads\": 8, \"num_local_experts\": 16, \"num_experts_per_tok\": 1,"          \
    " \"interleave_moe_layer_step\": 1, \"intermediate_size_mlp\": 16384,"                         \
    " \"attention_chunk_size\": 8192, \"attn_temperature_tuning\": true, \"floor_scale\": 8192,"   \
    " \"attn_scale\": 0.1, \"use_qk_norm\": true}"

static const qkv_hf_class hf_classes[] = {
    {"llama4_text", "Llama4ForCausalLM", DEFAULTS,
     "{\"hidden_size\": 5120, \"intermediate_size\": 8192, \"num_hidden_layers\": 48,"
     " \"num_attention_heads\": 40, \"max_position_embeddings\": 131072,"
     " \"tie_word_embeddings\": false}"},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .settings = hf_settings,
    .configure = hf_configure,
};

const qkv_family qkv_family_llama4 = {
    .name = "llama4",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_ADJACENT,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .chunk = CHUNK,
    .window_period = 4,
    .rope_skip_period = 4,
    .temperature = {.scale = 0.1f, .step = STEP, .offset = 1},
    .temperature_unturned = 1,
    .norms_without_weights = QKV_HAS_HEAD_NORMS,
    .experts_without_norm = EXPERTS_WITHOUT_NORM,
    .router = QKV_ROUTER_SIGMOID,
    .router_on_input = 1,
    .experts_keep_shares = 1,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS(O) | QKV_HAS(FFN_NORM) |
                      QKV_HAS_EXPERTS | QKV_HAS_SHARED_EXPERT,
    .layer_optional = QKV_HAS_HEAD_BIASES | QKV_HAS(O_BIAS),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT) | QKV_HAS_MODEL(ROPE_FREQS),
    .keys = QKV_READS(EXPERTS) | QKV_READS(SHARED_EXPERTS) | QKV_READS(EXPERT_PERIOD) |
            QKV_READS(TEMPERATURE) | QKV_READS(HEAD_NORMS),
    .hf = &hf,
};
