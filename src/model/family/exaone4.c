/*
 * exaone4: EXAONE 4.
 *
 * No norm before the blocks: their outputs are RMS-normalised instead. Queries and keys are normalised per head.
 * The large models have a window in three of four layers, and RoPE in these alone; the small ones have RoPE
 * everywhere. llama.cpp takes the window of a file as such only in models of 64 layers; files of other sizes
 * need the key attention.sliding_window_used, which `qkv convert` writes.
 */
#include <string.h>

#include "model/hf/hf.h"

static const char *const hf_architectures[] = {"Exaone4ForCausalLM", NULL};

static const qkv_hf_name hf_layer_names[] = {
    {"post_attention_layernorm", "post_attention_norm", NULL},
    {"post_feedforward_layernorm", "post_ffw_norm", NULL},
    {NULL, NULL, NULL},
};

/* "LLLG": three local layers, a global one. Read only where the layers are not listed. */
static int take_pattern(qkv_hf_config *config, int64_t *period, qkv_error *err) {
    json_t *pattern = qkv_hf_take(config, "sliding_window_pattern");
    const char *text = json_string_value(pattern);
    *period = text ? (int64_t)strlen(text) : pattern ? (int64_t)json_integer_value(pattern) : 4;
    const int fits = !text || (strchr(text, 'G') && strchr(text, 'G') + 1 == text + strlen(text));
    json_decref(pattern);
    if (fits && *period >= 0 && *period <= 4096) return QKV_OK;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "%s: sliding_window_pattern should be a number, or like \"LLLG\"",
                    config->path);
}

static int any_window(const json_t *types) {
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        if (type && strcmp(type, "sliding_attention") == 0) return 1;
    }
    return 0;
}

/* With a window that no layer has, no layer would turn. */
static int check_layers(qkv_hf_config *config, int has_window, qkv_error *err) {
    const json_t *types = json_object_get(config->settings, "layer_types");
    if (!has_window || !types || any_window(types)) return QKV_OK;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "%s: a sliding_window without any layer of layer_types that has it is not "
                    "supported",
                    config->path);
}

static int hf_configure(qkv_hf_config *config, qkv_error *err) {
    const json_t *width = json_object_get(config->settings, "sliding_window");
    const int has_window = width && json_number_value(width) > 0;
    int64_t period = 0;
    int status = check_layers(config, has_window, err);
    if (status == QKV_OK) status = take_pattern(config, &period, err);
    if (status != QKV_OK || !has_window) return status;
    if (period != config->family->window_period &&
        !json_object_get(config->settings, "layer_types"))
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: only models in which every 4th layer has no window are supported "
                        "where layer_types does not list them",
                        config->path);
    if (config->n_layer != config->family->window_layers)
        qkv_hf_set_bool(config, "attention.sliding_window_used", 1);
    return QKV_OK;
}

static const qkv_hf_class hf_classes[] = {
    {"exaone4", "Exaone4ForCausalLM", "{\"rms_norm_eps\": 1e-5}", NULL},
    {NULL, NULL, NULL, NULL},
};

static const qkv_hf hf = {
    .architectures = hf_architectures,
    .classes = hf_classes,
    .layer_names = hf_layer_names,
    .window = QKV_HF_WINDOW | QKV_HF_WINDOW_TYPES,
    .writes_window_layers = 1,
    .configure = hf_configure,
};

const qkv_family qkv_family_exaone4 = {
    .name = "exaone4",
    .norm = QKV_NORM_RMS,
    .position = QKV_POSITION_ROPE,
    .rope_pairs = QKV_ROPE_HALVES,
    .activation = QKV_ACT_SILU,
    .mlp = QKV_MLP_GATED,
    .window_period = 4,
    .window_layers = 64,
    .rope_in_windows = 1,
    .layer_required = QKV_HAS_SPLIT_HEADS | QKV_HAS_HEAD_NORMS | QKV_HAS(O) |
                      QKV_HAS(POST_ATTN_NORM) | QKV_HAS_GATED_MLP | QKV_HAS(POST_FFN_NORM),
    .model_required = QKV_HAS_MODEL_ENDS,
    .model_optional = QKV_HAS_MODEL(OUTPUT) | QKV_HAS_MODEL(ROPE_FREQS),
    .hf = &hf,
};
