/* Specifications of sweeps from files and from the command line: both become one JSON object. */
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "cli/sweep.h"

/* Larger than any list of prompts that fits a sweep. */
#define LARGEST_SPEC ((size_t)256 << 20)

int sweep_spec_read(json_t **spec, const char *path, qkv_error *err) {
    char *text = NULL;
    size_t size;
    json_error_t problem;
    *spec = NULL;
    int status = qkv_read_file(&text, &size, path, LARGEST_SPEC, err);
    if (status != QKV_OK) return status;
    *spec = qkv_json_parse(text, size, JSON_REJECT_DUPLICATES, &problem);
    free(text);
    if (!*spec) {
        return qkv_fail(err, QKV_ERR_FORMAT, "%s, line %d: %s", path, problem.line, problem.text);
    }
    if (json_is_object(*spec)) return QKV_OK;
    json_decref(*spec);
    *spec = NULL;
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: a sweep is a JSON object, {\"prompts\": ...}", path);
}

int sweep_shard_read(const char *text, int64_t *shard, int64_t *n_shards, qkv_error *err) {
    if (!text) return QKV_OK;
    const char *slash = strchr(text, '/');
    if (!slash || !qkv_parse_int(text, (size_t)(slash - text), shard) ||
        !qkv_parse_int(slash + 1, strlen(slash + 1), n_shards) || *shard < 1 ||
        *shard > *n_shards) {
        return cli_usage(err, "--shard is written I/N with I from 1 to N, not '%s'", text);
    }
    return QKV_OK;
}

/* ---- prompts ---- */

static int add_text(json_t *list, const char *text, size_t length, qkv_error *err) {
    if (!qkv_utf8_valid(text, length) || memchr(text, '\0', length)) {
        return qkv_fail(err, QKV_ERR_FORMAT, "prompt %zu is not UTF-8 text", json_array_size(list));
    }
    return qkv_json_push(list, json_stringn(text, length)) == 0 ? QKV_OK : qkv_fail_memory(err);
}

static int add_ids(json_t *list, const qkv_own_prompt *prompt, qkv_error *err) {
    json_t *ids = json_array();
    for (size_t i = 0; i < prompt->n_tokens && ids; i++) {
        qkv_json_push(ids, json_integer(prompt->tokens[i]));
    }
    return qkv_json_push(list, ids) == 0 ? QKV_OK : qkv_fail_memory(err);
}

/* The prompts as a list of texts and lists of ids. */
static int list_prompts(json_t **list, const sweep_flags *flags, qkv_error *err) {
    qkv_own_prompts prompts = {0};
    *list = json_array();
    int status = *list ? cli_prompts_load(&prompts, &flags->prompts, &flags->chat, err)
                       : qkv_fail_memory(err);
    for (size_t i = 0; i < prompts.n && status == QKV_OK; i++) {
        const qkv_own_prompt *prompt = &prompts.items[i];
        status = prompt->text ? add_text(*list, prompt->text, prompt->length, err)
                              : add_ids(*list, prompt, err);
    }
    qkv_own_prompts_release(&prompts);
    if (status == QKV_OK) return QKV_OK;
    json_decref(*list);
    *list = NULL;
    return status;
}

/* ---- conversations ---- */

static int chat_ids(json_t *list, const json_t *text, const sweep_flags *flags,
                    const qkv_model *model, qkv_error *err) {
    qkv_own_prompt prompt;
    const cli_item item = {json_string_value(text), CLI_PROMPT_TEXT};
    const unsigned special =
        QKV_TOKENIZE_ADD_SPECIAL | (flags->parse_special ? QKV_TOKENIZE_PARSE_SPECIAL : 0u);
    int status = cli_prompt_load(&prompt, &item, err);
    if (status == QKV_OK) status = cli_chat_tokenize(&flags->chat, &prompt, model, special, err);
    if (status == QKV_OK) status = add_ids(list, &prompt, err);
    qkv_own_prompt_release(&prompt);
    return status;
}

int sweep_spec_chat(json_t *spec, const sweep_flags *flags, const qkv_model *model,
                    qkv_error *err) {
    const json_t *prompts = json_object_get(spec, "prompts");
    if (!flags->chat.on && !flags->chat.show) return QKV_OK;
    if (!json_is_array(prompts)) {
        return cli_usage(err, "--chat and --show-prompt want a list of prompts");
    }
    json_t *list = json_array();
    int status = list ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; i < json_array_size(prompts) && status == QKV_OK; i++) {
        json_t *prompt = json_array_get(prompts, i);
        if (json_is_string(prompt)) {
            status = chat_ids(list, prompt, flags, model, err);
        } else if (flags->chat.on) {
            status = cli_usage(err, "--chat takes text, not --tokens");
        } else if (qkv_json_push(list, json_incref(prompt)) != 0) {
            status = qkv_fail_memory(err);
        }
    }
    if (status == QKV_OK) json_object_del(spec, "parse_special");
    if (status == QKV_OK && qkv_json_put(spec, "prompts", json_incref(list)) != 0)
        status = qkv_fail_memory(err);
    json_decref(list);
    return status;
}

/* ---- the other keys ---- */

static int set(json_t *spec, const char *key, json_t *value, qkv_error *err) {
    return qkv_json_put(spec, key, value) == 0 ? QKV_OK : qkv_fail_memory(err);
}

int sweep_spec_override(json_t *spec, const sweep_flags *flags, qkv_error *err) {
    const struct {
        const char *key, *text;
    } texts[] = {
        {"layers", flags->layers}, {"heads", flags->heads},     {"targets", flags->targets},
        {"ops", flags->ops},       {"epsilon", flags->epsilon}, {"metrics", flags->metrics},
        {"at", flags->at}};
    int status = cli_chat_check(&flags->chat, err);
    for (size_t i = 0; i < sizeof texts / sizeof *texts && status == QKV_OK; i++) {
        if (!texts[i].text) continue;
        if (!qkv_utf8_valid(texts[i].text, strlen(texts[i].text))) {
            return cli_usage(err, "--%s is not UTF-8 text", texts[i].key);
        }
        status = set(spec, texts[i].key, json_string(texts[i].text), err);
    }
    if (status == QKV_OK && flags->length) {
        status = set(spec, "length", json_integer(flags->length), err);
    }
    if (status == QKV_OK && flags->parse_special) {
        status = set(spec, "parse_special", json_true(), err);
    }
    if (status != QKV_OK || !flags->prompts.n) return status;
    json_t *prompts;
    status = list_prompts(&prompts, flags, err);
    return status == QKV_OK ? set(spec, "prompts", prompts, err) : status;
}
