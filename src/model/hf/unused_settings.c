/*
 * What no code has asked for when all of config.json has been read.
 *
 * Settings of three kinds are left: those that transformers' classes know and that change nothing in
 * a forward pass; those that its base class uses for every model and that are not implemented here,
 * which are refused; and all others. What a class uses beyond its base class is in the table of its
 * family, so the others are known to no class: people's notes, other programs' settings. They have no
 * effect in transformers and none here, and their names become a notice.
 */
#include <string.h>

#include "model/hf/hf.h"

#define MAX_IGNORED 100 /* names that are written out */
#define MAX_NAME 60     /* characters of each */

/* Training, generation, caching, bookkeeping; or what the tensors tell as well. */
/* clang-format off */
static const char *const irrelevant[] = {
    "add_cross_attention", "architectures", "attention_bias", "attention_dropout",
    "attention_probs_dropout_prob", "attention_softmax_in_fp32", "attn_implementation",
    "attn_pdrop", "auto_map", "bad_words_ids", "begin_suppress_tokens", "bos_token_id",
    "cache_implementation", "chunk_size_feed_forward", "classifier_dropout", "cls_token_id",
    "cross_attention_hidden_size", "custom_pipelines", "decoder_start_token_id", "diversity_penalty", "do_sample",
    "dtype", "early_stopping", "embd_pdrop", "embedding_dropout", "encoder_no_repeat_ngram_size",
    "eos_token_id", "experts_implementation", "exponential_decay_length_penalty", "finetuning_task", "forced_bos_token_id",
    "forced_eos_token_id", "gradient_checkpointing", "hidden_dropout", "hidden_dropout_prob",
    "id2label", "initializer_range", "is_causal", "is_composition", "is_decoder", "is_llama_config", "keys_to_ignore_at_inference",
    "label2id", "length_penalty", "mask_token_id", "max_length", "max_new_tokens",
    "max_window_layers", "min_length", "min_p", "mlp_bias", "model_max_length", "model_type",
    "name_or_path", "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_labels",
    "num_return_sequences", "original_max_position_embeddings", "output_attentions",
    "output_hidden_states", "output_past", "output_router_logits", "output_scores", "pad_token_id",
    "predict_special_tokens", "prefix", "pretraining_tp", "problem_type", "remove_invalid_values",
    "reorder_and_upcast_attn", "repetition_penalty", "resid_pdrop", "residual_dropout",
    "return_dict", "return_dict_in_generate", "rope_interleaved", "router_aux_loss_coef",
    "router_jitter_noise", "scale_attention_softmax_in_fp32", "sep_token_id", "seq_length",
    "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
    "summary_use_proj", "suppress_tokens", "task_specific_params", "temperature", "tf_legacy_loss",
    "tie_encoder_decoder", "tokenizer_class", "top_k", "top_p", "torch_dtype", "torchscript",
    "transformers.js_config", "transformers_version", "typical_p", "unk_token_id", "unsloth_fixed",
    "unsloth_version", "use_bfloat16", "use_bias", "use_cache", "use_qkv_bias", "use_return_dict",
    "vocab_size", "xla_device",
    NULL,
};
/* clang-format on */

/* What the base class uses, whatever the model: other layers, other heads, other weights. */
static const char *const refused[] = {"is_encoder_decoder", "per_layer_config", "pruned_heads",
                                      "transformers_weights", NULL};
static const char *const quantised[] = {"quantization_config", "compression_config", NULL};

static int is_among(const char *const *list, const char *name) {
    for (; list && *list; list++) {
        if (strcmp(*list, name) == 0) return 1;
    }
    return 0;
}

/* "quantization" is what MLX writes; only its own programs read its tensors. */
static int is_quantised(const char *name, const json_t *value) {
    if (strcmp(name, "quantization") == 0) return json_object_size(value) > 0;
    return is_among(quantised, name) && !qkv_hf_says_nothing(value);
}

int qkv_hf_says_nothing(const json_t *value) {
    if (json_is_null(value) || json_is_false(value)) return 1;
    if (json_is_number(value)) return json_number_value(value) == 0;
    if (json_is_string(value)) return json_string_length(value) == 0;
    return json_array_size(value) == 0 && json_object_size(value) == 0 && !json_is_true(value);
}

void qkv_hf_ignore(qkv_hf_config *config, const char *object, const char *name) {
    if (config->n_ignored++ >= MAX_IGNORED) return;
    qkv_text_printf(&config->ignored, "%s%s%s", config->ignored.length ? ", " : "",
                    object ? object : "", object ? "." : "");
    qkv_text_append_short(&config->ignored, name, strlen(name), MAX_NAME);
}

/* A decoder that is said not to be causal has another mask there, since version 5. */
static int is_refused(const qkv_hf_config *config, const char *name, const json_t *value) {
    if (strcmp(name, "is_causal") == 0)
        return !config->family->bidirectional && !json_is_true(value) && !json_is_null(value);
    return is_among(refused, name) && !qkv_hf_says_nothing(value);
}

static int check_setting(qkv_hf_config *config, const char *name, const json_t *value,
                         qkv_error *err) {
    if (is_quantised(name, value))
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: the weights are quantised (%s); take the original model, or a "
                        "quantised GGUF file",
                        config->path, name);
    if (is_refused(config, name, value))
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: the setting %s of %s is not supported, and to ignore it would compute "
                        "another model",
                        config->path, name, config->architecture);
    const int known = json_is_null(value) || name[0] == '_' || is_among(quantised, name) ||
                      is_among(refused, name) || is_among(irrelevant, name);
    if (!known) qkv_hf_ignore(config, NULL, name);
    return QKV_OK;
}

static int check_all(qkv_hf_config *config, json_t *settings, const char *const *known,
                     qkv_error *err) {
    const char *name;
    json_t *value;
    int status = QKV_OK;
    json_object_foreach(settings, name, value) {
        if (status == QKV_OK && !is_among(known, name))
            status = check_setting(config, name, value, err);
    }
    return status;
}

int qkv_hf_check_unused(qkv_hf_config *config, qkv_error *err) {
    int status = check_all(config, config->settings, NULL, err);
    if (status == QKV_OK) status = check_all(config, config->outer, qkv_hf_other_settings, err);
    if (status == QKV_OK && config->n_ignored > MAX_IGNORED)
        qkv_text_printf(&config->ignored, " and %zu more", config->n_ignored - MAX_IGNORED);
    if (status == QKV_OK && config->ignored.failed) status = qkv_fail_memory(err);
    return status;
}
