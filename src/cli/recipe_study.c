/*
 * qkv recipe, of a recipe that is a study: {"study": KIND, "options": {...}}. Options of the command line
 * come on top of the file's.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/recipe.h"

enum { MOST_PHRASES = 1 << 20 }; /* bytes */

int recipe_is_study(const json_t *recipe) {
    return json_object_get(recipe, "study") != NULL;
}

static int check_keys(const json_t *recipe, const char *path, qkv_error *err) {
    static const char *const known[] = {"title", "about", "study", "options"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)recipe, key, value) {
        size_t i = 0, n = sizeof known / sizeof *known;
        while (i < n && strcmp(key, known[i]) != 0) i++;
        if (i == n)
            return qkv_fail(err, QKV_ERR_FORMAT,
                            "%s: the recipe of a study has no '%s'; it has title, about, study, "
                            "options",
                            path, key);
    }
    const json_t *options = json_object_get(recipe, "options");
    if (!json_is_string(json_object_get(recipe, "study")) || (options && !json_is_object(options)))
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: 'study' is the name of one, and 'options' an object", path);
    return QKV_OK;
}

/* ---- options ---- */

/* A number, true or false, or else a text. */
static json_t *read_value(const char *text) {
    json_t *value = qkv_json_parse(text, strlen(text), JSON_DECODE_ANY, NULL);
    if (value && !json_is_object(value) && !json_is_null(value)) return value;
    json_decref(value);
    return qkv_json_text(text);
}

static int set_options(json_t *options, const cli_list *set, qkv_error *err) {
    for (size_t i = 0; i < set->n; i++) {
        const char *text = set->items[i].value, *equals = strchr(text, '=');
        if (!equals || equals == text)
            return cli_usage(err, "--set is written NAME=VALUE, not '%s'", text);
        char *name = qkv_strndup(text, (size_t)(equals - text));
        /* What is a text in the recipe stays one: a list of a single number. */
        json_t *value = json_is_string(json_object_get(options, name)) ? qkv_json_text(equals + 1)
                                                                       : read_value(equals + 1);
        const int failed = !name || json_object_set_new(options, name, value) != 0;
        free(name);
        if (failed) return qkv_fail_memory(err);
    }
    return QKV_OK;
}

static int set_phrases(json_t *options, const char *path, qkv_error *err) {
    char *text = NULL;
    size_t size = 0;
    if (!path) return QKV_OK;
    int status = qkv_read_file(&text, &size, path, MOST_PHRASES, err);
    json_t *value = status == QKV_OK ? json_stringn(text, size) : NULL;
    free(text);
    if (status == QKV_OK && !value)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s is not UTF-8 text", path);
    if (status == QKV_OK && json_object_set_new(options, "phrases", value) != 0)
        status = qkv_fail_memory(err);
    return status;
}

static int set_flag(json_t *options, const char *name, qkv_error *err) {
    return json_object_set_new(options, name, json_true()) == 0 ? QKV_OK : qkv_fail_memory(err);
}

static int make_options(json_t **out, const json_t *recipe, const recipe_args *args,
                        qkv_error *err) {
    const json_t *own = json_object_get(recipe, "options");
    json_t *options = *out = own ? json_deep_copy(own) : json_object();
    if (!options) return qkv_fail_memory(err);
    int status = set_options(options, &args->set, err);
    if (status == QKV_OK) status = set_phrases(options, args->phrases, err);
    if (status == QKV_OK && args->parity) status = set_flag(options, "parity", err);
    if (status == QKV_OK && args->mean_map) status = set_flag(options, "mean_map", err);
    return status;
}

/* ---- running ---- */

int recipe_run_study(const cli_call *call, const json_t *recipe, const char *path, qkv_error *err) {
    const recipe_args *args = call->args;
    char *bundled = NULL;
    json_t *options = NULL;
    cli_list prompts = args->flags.prompts;
    cli_item item = {NULL, CLI_PROMPT_LINES};
    int status = check_keys(recipe, path, err);
    if (status == QKV_OK) status = make_options(&options, recipe, args, err);
    if (status == QKV_OK && !prompts.n) {
        status = cli_recipe_find(&bundled, "prompts.txt", err);
        item.value = bundled;
        prompts = (cli_list){.items = &item, .n = 1};
    }
    cli_study_job job = {.kind = json_string_value(json_object_get(recipe, "study")),
                         .how = &args->study,
                         .model = args->model,
                         .prompts = &prompts,
                         .parse_special = args->flags.parse_special,
                         .chat = &args->flags.chat,
                         .options = options,
                         .results = args->results,
                         .shows_progress = 1};
    if (status == QKV_OK)
        status = cli_study_run(call, &job, err); /* takes the options */
    else
        json_decref(options);
    free(bundled);
    return status;
}
