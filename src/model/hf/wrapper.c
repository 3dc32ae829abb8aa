/*
 * The language part of a model for images and text.
 *
 * Its settings are the object text_config, which leaves out what is the default of its class; its
 * tensors have language_model in their names. What it is says text_config's model_type, and the
 * families say under which they are known (qkv_hf.classes). The other parts are not loaded: prompts are
 * text, and without an image they have no effect. Refused: wrappers in which the language part does
 * not run as it does alone (other positions, other masks, cross-attention); they are on no list.
 */
#include <string.h>

#include "base/json.h"
#include "model/hf/hf.h"

const qkv_hf_wrapper qkv_hf_wrappers[] = {
    {"Gemma3ForConditionalGeneration", "gemma3_text", 0},
    {"Gemma4ForConditionalGeneration", "gemma4_text", 0},
    {"Idefics3ForConditionalGeneration", "llama", 0},
    {"InternVLForConditionalGeneration", "qwen2", 0},
    {"Llama4ForConditionalGeneration", "llama4_text", 0},
    {"LlavaForConditionalGeneration", "llama", 0},
    {"LlavaNextForConditionalGeneration", "llama", 0},
    {"LlavaOnevisionForConditionalGeneration", "qwen2", 0},
    {"Mistral3ForConditionalGeneration", "mistral", 0},
    {"Qwen2VLForConditionalGeneration", "qwen2_vl_text", 1},
    {"Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl_text", 1},
    {"Qwen3VLForConditionalGeneration", "qwen3_vl_text", 0},
    {"Qwen3_5ForConditionalGeneration", "qwen3_5_text", 0},
    {"Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe_text", 0},
    {"SmolVLMForConditionalGeneration", "llama", 0},
    {"VipLlavaForConditionalGeneration", "llama", 0},
    {NULL, NULL, 0},
};

/* As versions 4 and 5 of transformers save them; the last two are of the output, and of a model that
 * was saved without it. */
const char *const qkv_hf_text_prefixes[] = {"language_model.model.",
                                            "model.language_model.",
                                            "language_model.",
                                            "model.text_model.",
                                            "model.",
                                            "",
                                            NULL};

const char *const qkv_hf_other_parts[] = {
    "vision_tower",  "vision_model", "visual",       "connector",   "multi_modal_projector",
    "image_newline", "audio_tower",  "embed_vision", "embed_audio", NULL};

const char *const qkv_hf_other_settings[] = {
    "audio_config",
    "audio_token_id",
    "boa_token_id",
    "boi_token_id",
    "boi_token_index",
    "downsample_ratio",
    "eoa_token_id",
    "eoa_token_index",
    "eoi_token_id",
    "eoi_token_index",
    "ignore_index",
    "image_grid_pinpoints",
    "image_seq_length",
    "image_token_id",
    "image_token_index",
    "mm_tokens_per_image",
    "multimodal_projector_bias",
    "projector_hidden_act",
    "projector_layernorm_eps",
    "scale_factor",
    "spatial_merge_size",
    "tie_word_embeddings", /* where text_config does not say it */
    "use_image_newline_parameter",
    "video_token_id",
    "video_token_index",
    "vision_aspect_ratio",
    "vision_config",
    "vision_end_token_id",
    "vision_feature_layer",
    "vision_feature_layers",
    "vision_feature_select_strategy",
    "vision_start_token_id",
    "vision_token_id",
    NULL,
};

static const qkv_hf_wrapper *find_wrapper(const json_t *settings) {
    const json_t *list = json_object_get(settings, "architectures");
    const char *name = json_string_value(json_array_get(list, 0));
    for (const qkv_hf_wrapper *w = qkv_hf_wrappers; name && w->architecture; w++) {
        if (strcmp(w->architecture, name) == 0) return w;
    }
    return NULL;
}

/* The architecture that the language part would be alone; and whether its output is tied may stand
 * outside. */
static int complete(const qkv_hf_config *config, qkv_error *err) {
    json_t *tied = json_object_get(config->outer, "tie_word_embeddings");
    int failed = qkv_json_put(config->settings, "architectures",
                              json_pack("[s]", config->part->architecture)) != 0;
    if (json_is_boolean(tied) && !json_object_get(config->settings, "tie_word_embeddings"))
        failed |= qkv_json_put(config->settings, "tie_word_embeddings", json_incref(tied)) != 0;
    return failed ? qkv_fail_memory(err) : QKV_OK;
}

/* Without text_config, the settings of all parts stand side by side: those of the others move out. */
static int split_flat(qkv_hf_config *config, qkv_error *err) {
    config->outer = json_object();
    if (!config->outer) return qkv_fail_memory(err);
    json_object_del(config->settings, "model_type"); /* of the whole */
    for (const char *const *name = qkv_hf_other_settings; *name; name++) {
        json_t *value = json_incref(json_object_get(config->settings, *name));
        json_object_del(config->settings, *name);
        if (value && qkv_json_put(config->outer, *name, value) != 0) return qkv_fail_memory(err);
    }
    return QKV_OK;
}

static int take_text_config(qkv_hf_config *config, qkv_error *err) {
    config->outer = config->settings;
    config->settings = qkv_json_copy(json_object_get(config->outer, "text_config"));
    json_object_del(config->outer, "text_config");
    if (json_is_object(config->settings)) return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s without an object text_config", config->path,
                    config->wrapper->architecture);
}

int qkv_hf_unwrap(qkv_hf_config *config, qkv_error *err) {
    config->wrapper = find_wrapper(config->settings);
    if (!config->wrapper) return QKV_OK;
    const int is_flat =
        config->wrapper->may_be_flat && !json_object_get(config->settings, "text_config");
    const int status = is_flat ? split_flat(config, err) : take_text_config(config, err);
    if (status != QKV_OK) return status;
    const json_t *given = json_object_get(config->settings, "model_type");
    const char *type = given ? json_string_value(given) : config->wrapper->text_type;
    config->part = type ? qkv_hf_class_find(type) : NULL;
    if (!config->part || !config->part->part_defaults)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: %s with a language part of type '%.60s' is not supported",
                        config->path, config->wrapper->architecture, type ? type : "?");
    return complete(config, err);
}
