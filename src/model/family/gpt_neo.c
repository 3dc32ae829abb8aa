/*
 * gpt_neo: GPT-Neo and TinyStories.
 *
 * As gpt2, with separate projections without biases, scores that are not scaled, and layers with a window
 * between those that see everything, as attention_types lists them. GGUF has no such architecture.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"GPTNeoForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"ln_1", "attn_norm", NULL},
    {"attn.attention.q_proj", "attn_q", NULL},
    {"attn.attention.k_proj", "attn_k", NULL},
    {"attn.attention.v_proj", "attn_v", NULL},
    {"attn.attention.out_proj", "attn_output", NULL},
    {"ln_2", "ffn_norm", NULL},
    {"mlp.c_fc", "ffn_up", NULL},
    {"mlp.c_proj", "ffn_down", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_name hf_model_names[] = {
    {"wte", "token_embd", NULL},
    {"wpe", "position_embd", NULL},
    {"ln_f", "output_norm", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_setting hf_settings[] = {
    {"embed_dropout", QKV_HF_SKIP, NULL, 0},
    {"resid_dropout", QKV_HF_SKIP, NULL, 0},
    {NULL, QKV_HF_SKIP, NULL, 0},
};

/* The causal masks, which old versions saved. */
static const char *const hf_ignored[] = {".attention.bias", ".attention.masked_bias", NULL};

/* ---- which layers have the window ---- */

typedef struct layer_kinds {
    uint8_t *local; /* n_layer */
    int64_t n;      /* that have been listed */
} layer_kinds;

static int add_kind(const qkv_hf_config *config, layer_kinds *kinds, const json_t *name,
                    qkv_error *err) {
    const char *kind = json_string_value(name);
    const int local = kind && strcmp(kind, "local") == 0;
    if (!local && (!kind || strcmp(kind, "global") != 0))
        return qkv_fail(
            err, QKV_ERR_UNSUPPORTED,
            "%s: layer %lld has attention of type '%.40s'; global and local are supported",
            config->path, (long long)kinds->n, kind ? kind : "?");
    if (kinds->n < config->n_layer) kinds->local[kinds->n] = (uint8_t)local;
    kinds->n++;
    return QKV_OK;
}

static int add_list(const qkv_hf_config *config, layer_kinds *kinds, const json_t *list,
                    qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < json_array_size(list) && status == QKV_OK; i++)
        status = add_kind(config, kinds, json_array_get(list, i), err);
    return status;
}

/* [[["global", "local"], 12]]: these two, twelve times over; there may be more such pairs. */
static int add_repeated(const qkv_hf_config *config, layer_kinds *kinds, const json_t *pairs,
                        qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < json_array_size(pairs) && status == QKV_OK; i++) {
        const json_t *pair = json_array_get(pairs, i);
        const json_t *list = json_array_get(pair, 0), *times = json_array_get(pair, 1);
        if (!json_is_array(list) || json_array_size(list) == 0 || !json_is_integer(times))
            return qkv_fail(err, QKV_ERR_FORMAT,
                            "%s: attention_types should be a list of pairs [names, times]",
                            config->path);
        for (json_int_t n = json_integer_value(times);
             n > 0 && status == QKV_OK && kinds->n <= config->n_layer; n--)
            status = add_list(config, kinds, list, err);
    }
    return status;
}

/* attention_layers is attention_types written out; where a config has it, the class reads it instead. */
static int read_kinds(qkv_hf_config *config, layer_kinds *kinds, qkv_error *err) {
    json_t *layers = qkv_hf_take(config, "attention_layers");
    json_t *types = qkv_hf_take(config, "attention_types");
    int status =
        layers ? add_list(config, kinds, layers, err) : add_repeated(config, kinds, types, err);
    if (status == QKV_OK && kinds->n != config->n_layer)
        status =
            qkv_fail(err, QKV_ERR_FORMAT, "%s: %s lists other than the %lld layers that there are",
                     config->path, layers ? "attention_layers" : "attention_types",
                     (long long)config->n_layer);
    json_decref(layers);
    json_decref(types);
    return status;
}

static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    int64_t window = 0;
    const int found = qkv_hf_take_int(config, "window_size", 1, 1 << 30, &window, err);
    if (found < 0) return found;
    layer_kinds kinds = {.local = qkv_calloc((size_t)config->n_layer, 1)};
    if (!kinds.local) return qkv_fail_memory(err);
    const int status = read_kinds(config, &kinds, err);
    if (status == QKV_OK) {
        qkv_hf_set_float(config, "attention.scale", 1);
        qkv_hf_set_int(config, "attention.sliding_window", window);
        gguf_set_arr_data(config->meta, "gpt_neo.attention.sliding_window_pattern", GGUF_TYPE_BOOL,
                          kinds.local, (size_t)config->n_layer);
    }
    free(kinds.local);
    return status;
}

static const qkv_hf_class hf_classes[] = {
    {"gpt_neo", "GPTNeoForCausalLM",
     "{\"max_position_embeddings\": 2048, \"window_size\": 256, \"layer_norm_epsilon\": 1e-5, "
     "\"attention_types\": [[[\"global\", \"local\"], 12]], \"tie_word_embeddings\": true}",
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
};

const qkv_family qkv_family_gpt_neo = {
    .name = "gpt_neo",
    .norm = QKV_NORM_LAYER,
    .position = QKV_POSITION_LEARNED,
    .activation = QKV_ACT_GELU_TANH,
    .layer_required = QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS(O) | QKV_HAS(O_BIAS) |
                      QKV_HAS(FFN_NORM) | QKV_HAS_NORM_BIASES | QKV_HAS_PLAIN_MLP,
    .model_required =
        QKV_HAS_MODEL_ENDS | QKV_HAS_MODEL(POSITION_EMBD) | QKV_HAS_MODEL(OUTPUT_NORM_BIAS),
    .model_optional = QKV_HAS_MODEL(OUTPUT),
    .keys = QKV_READS(ATTN_SCALE),
    .hf = &hf,
};
