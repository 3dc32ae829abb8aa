/* The prompts of a specification: texts or lists of token ids, cut to one length where asked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "sweep/spec.h"

static int read_ids(qkv_own_prompt *prompt, const json_t *list, const char *name, qkv_error *err) {
    prompt->n_tokens = json_array_size(list);
    prompt->tokens = qkv_calloc(prompt->n_tokens, sizeof *prompt->tokens);
    if (!prompt->tokens) return qkv_fail_memory(err);
    for (size_t i = 0; i < prompt->n_tokens; i++) {
        const json_t *id = json_array_get(list, i);
        json_int_t value = json_integer_value(id);
        if (!json_is_integer(id) || value < 0 || value > INT32_MAX)
            return qkv_fail(err, QKV_ERR_SYNTAX, "%s: a token id must be a whole number", name);
        prompt->tokens[i] = (int32_t)value;
    }
    return QKV_OK;
}

static int read_text(qkv_own_prompt *prompt, const qkv_sweep *sweep, const json_t *value,
                     qkv_error *err) {
    prompt->flags =
        QKV_TOKENIZE_ADD_SPECIAL | (sweep->parse_special ? QKV_TOKENIZE_PARSE_SPECIAL : 0u);
    prompt->length = json_string_length(value);
    prompt->text = qkv_strdup(json_string_value(value));
    if (!prompt->text) return qkv_fail_memory(err);
    return qkv_tokenize(sweep->model, &prompt->tokens, &prompt->n_tokens, prompt->text,
                        prompt->length, prompt->flags, err);
}

/* Its text stands for it in the specification where it gives the same tokens there. */
static int is_told_by_text(const qkv_sweep *sweep, const qkv_own_prompt *prompt) {
    const uint32_t flags =
        QKV_TOKENIZE_ADD_SPECIAL | (sweep->parse_special ? QKV_TOKENIZE_PARSE_SPECIAL : 0u);
    return prompt->text && !prompt->is_written && prompt->flags == flags &&
           strlen(prompt->text) == prompt->length && qkv_utf8_valid(prompt->text, prompt->length);
}

int qkv_spec_add_prompt(qkv_sweep *sweep, const qkv_own_prompt *prompt, qkv_error *err) {
    qkv_own_prompt from = *prompt, empty = {0};
    if (!is_told_by_text(sweep, prompt)) from.text = NULL;
    if (!QKV_PUSH(sweep->prompts, sweep->prompts_capacity, sweep->n_prompts, empty))
        return qkv_fail_memory(err);
    return qkv_own_prompt_copy(&sweep->prompts[sweep->n_prompts - 1], &from, err);
}

int qkv_spec_prompt(qkv_sweep *sweep, const json_t *value, const char *name, qkv_error *err) {
    size_t number = sweep->n_prompts;
    qkv_own_prompt empty = {0};
    if (!QKV_PUSH(sweep->prompts, sweep->prompts_capacity, sweep->n_prompts, empty))
        return qkv_fail_memory(err);
    qkv_own_prompt *prompt = &sweep->prompts[number];
    if (json_is_string(value) && json_string_length(value) == 0)
        return qkv_fail(err, QKV_ERR_SYNTAX, "%s is empty", name);
    if (json_is_string(value)) return read_text(prompt, sweep, value, err);
    if (json_is_array(value)) return read_ids(prompt, value, name, err);
    return qkv_fail(err, QKV_ERR_SYNTAX, "%s is neither a text nor a list of token ids", name);
}

/* The last one, cut to the length where there is one. */
static int cut_prompt(qkv_sweep *sweep, const char *name, qkv_error *err) {
    if (!sweep->length) return QKV_OK;
    qkv_own_prompt *prompt = &sweep->prompts[sweep->n_prompts - 1];
    if ((int64_t)prompt->n_tokens < sweep->length)
        return qkv_fail(err, QKV_ERR_PLAN,
                        "%s has %zu tokens, fewer than the length %lld: give longer prompts", name,
                        prompt->n_tokens, (long long)sweep->length);
    prompt->n_tokens = (size_t)sweep->length;
    return QKV_OK;
}

static int read_prompt(qkv_sweep *sweep, const json_t *value, qkv_error *err) {
    char name[48];
    snprintf(name, sizeof name, "prompt %zu", sweep->n_prompts);
    const int status = qkv_spec_prompt(sweep, value, name, err);
    return status == QKV_OK ? cut_prompt(sweep, name, err) : status;
}

/* Those that are tokenized already. */
static int take_prompts(qkv_sweep *sweep, const qkv_own_prompts *prompts, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < prompts->n && status == QKV_OK; i++) {
        char name[48];
        snprintf(name, sizeof name, "prompt %zu", i);
        status = qkv_spec_add_prompt(sweep, &prompts->items[i], err);
        if (status == QKV_OK) status = cut_prompt(sweep, name, err);
    }
    return status;
}

int qkv_spec_prompt_check(const qkv_sweep *sweep, size_t number, const char *name, qkv_error *err) {
    const qkv_own_prompt *prompt = &sweep->prompts[number];
    qkv_plan *plan = NULL;
    qkv_error problem = {0};
    const int status =
        qkv_plan_new(&plan, sweep->model, prompt->tokens, prompt->n_tokens, &problem);
    if (status != QKV_OK) qkv_fail(err, status, "%s: %s", name, problem.message);
    qkv_plan_free(plan);
    return status;
}

static int check_prompts(const qkv_sweep *sweep, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < sweep->n_prompts && status == QKV_OK; i++) {
        char name[48];
        snprintf(name, sizeof name, "prompt %zu", i);
        status = qkv_spec_prompt_check(sweep, i, name, err);
    }
    return status;
}

int qkv_spec_parse_special(qkv_spec *spec, qkv_error *err) {
    const json_t *special = json_object_get(spec->object, "parse_special");
    if (special && !json_is_boolean(special))
        return qkv_fail(err, QKV_ERR_SYNTAX, "parse_special is true or false");
    spec->sweep->parse_special = json_is_true(special);
    return QKV_OK;
}

int qkv_spec_prompts(qkv_spec *spec, qkv_error *err) {
    qkv_sweep *sweep = spec->sweep;
    const json_t *length = json_object_get(spec->object, "length");
    const json_t *prompts = json_object_get(spec->object, "prompts");
    const int special = qkv_spec_parse_special(spec, err);
    if (special != QKV_OK) return special;
    if (length && (!json_is_integer(length) || json_integer_value(length) < 1))
        return qkv_fail(err, QKV_ERR_SYNTAX, "length is a number of tokens, from 1");
    sweep->length = json_integer_value(length);
    if (spec->prompts) {
        const int status = take_prompts(sweep, spec->prompts, err);
        return status == QKV_OK ? check_prompts(sweep, err) : status;
    }
    if (!prompts) return qkv_fail(err, QKV_ERR_SYNTAX, "the sweep has no prompts");
    if (json_is_string(prompts)) {
        int status = read_prompt(sweep, prompts, err);
        return status == QKV_OK ? check_prompts(sweep, err) : status;
    }
    if (json_array_size(prompts) == 0)
        return qkv_fail(err, QKV_ERR_SYNTAX,
                        "prompts must be a list of texts or of lists of token ids");
    int status = QKV_OK;
    for (size_t i = 0; i < json_array_size(prompts) && status == QKV_OK; i++)
        status = read_prompt(sweep, json_array_get(prompts, i), err);
    return status == QKV_OK ? check_prompts(sweep, err) : status;
}
