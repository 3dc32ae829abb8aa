/* See recipe_study.h. */
#include "cli/recipe_study.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* ---- the recipe ---- */

/* Keys that are not understood are mistakes. */
static int check_keys(const cli_recipe_study *r, qkv_error *err) {
    static const char *const known[] = {"title", "about", "study", "options", "prompts"};
    const char *key;
    json_t *value;
    json_object_foreach(r->tree, key, value) {
        int found = 0;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) found |= !strcmp(key, known[i]);
        if (!found)
            return qkv_fail(err, QKV_ERR_FORMAT,
                            "%s: a recipe of a study has no \"%.40s\"; it has title, about, study, "
                            "options and prompts",
                            r->path, key);
    }
    if (!json_is_string(json_object_get(r->tree, "study")))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: \"study\" is the name of a study, a text",
                        r->path);
    const json_t *options = json_object_get(r->tree, "options");
    if (options && !json_is_object(options))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: \"options\" is no JSON object", r->path);
    return QKV_OK;
}

/* ---- options ---- */

/* A value is JSON where it can be read so, else a text. */
static json_t *value_of(const char *text) {
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    return value ? value : qkv_json_text(text);
}

static int set_options(json_t *options, const cli_list *set, qkv_error *err) {
    for (size_t i = 0; i < set->n; i++) {
        const char *given = set->items[i].value, *sign = strchr(given, '=');
        if (!sign || sign == given)
            return cli_usage(err, "--set is written OPTION=VALUE, not '%s'", given);
        char *name = qkv_strndup(given, (size_t)(sign - given));
        const int failed = !name || json_object_set_new(options, name, value_of(sign + 1)) != 0;
        free(name);
        if (failed) return qkv_fail_memory(err);
    }
    return QKV_OK;
}

/* ---- prompts ---- */

typedef struct prompt_items {
    cli_list list;
    char *path; /* of the bundled ones */
} prompt_items;

static int add_item(prompt_items *to, const char *value, int tag, qkv_error *err) {
    const cli_item item = {value, tag};
    return QKV_PUSH(to->list.items, to->list.capacity, to->list.n, item) ? QKV_OK
                                                                         : qkv_fail_memory(err);
}

static int add_own(prompt_items *to, const cli_recipe_study *r, qkv_error *err) {
    const json_t *prompts = json_object_get(r->tree, "prompts");
    int status =
        json_is_array(prompts) && json_array_size(prompts)
            ? QKV_OK
            : qkv_fail(err, QKV_ERR_FORMAT, "%s: \"prompts\" is no list of texts", r->path);
    for (size_t i = 0; i < json_array_size(prompts) && status == QKV_OK; i++) {
        const char *text = json_string_value(json_array_get(prompts, i));
        status = text ? add_item(to, text, CLI_PROMPT_TEXT, err)
                      : qkv_fail(err, QKV_ERR_FORMAT, "%s: prompt %zu is no text", r->path, i);
    }
    return status;
}

/* As many of those that come with qkv as the study takes. */
static int add_bundled(prompt_items *to, const char *kind, qkv_error *err) {
    size_t least = 0, most = 0;
    if (!qkv_study_kind_prompts(kind, &least, &most) || most == 0) return QKV_OK;
    for (size_t i = 0; i < most && most <= 3 && qkv_default_prompt(i); i++) {
        const int status = add_item(to, qkv_default_prompt(i), CLI_PROMPT_TEXT, err);
        if (status != QKV_OK) return status;
    }
    if (most <= 3) return QKV_OK;
    const int status = cli_recipe_find(&to->path, "prompts.txt", err);
    return status == QKV_OK ? add_item(to, to->path, CLI_PROMPT_LINES, err) : status;
}

/* ---- all of it ---- */

int cli_recipe_study_run(const cli_call *call, const cli_recipe_study *r, qkv_error *err) {
    prompt_items items = {0};
    const char *kind = json_string_value(json_object_get(r->tree, "study"));
    json_t *given = json_object_get(r->tree, "options");
    json_t *options = given ? json_deep_copy(given) : json_object();
    int status = options ? check_keys(r, err) : qkv_fail_memory(err);
    if (status == QKV_OK) status = set_options(options, r->set, err);
    if (status == QKV_OK && r->prompts->n == 0 && r->chat->column)
        status = cli_usage(err, "--column is of a CSV file: give it with -f");
    if (status == QKV_OK && r->prompts->n == 0) {
        status = json_object_get(r->tree, "prompts") ? add_own(&items, r, err)
                                                     : add_bundled(&items, kind, err);
    }
    const cli_list *prompts = r->prompts->n ? r->prompts : &items.list;
    cli_study_job job = {.kind = kind,
                         .how = r->how,
                         .model = r->model,
                         .prompts = prompts->n ? prompts : NULL,
                         .parse_special = r->parse_special,
                         .chat = r->chat,
                         .options = options};
    if (status == QKV_OK)
        status = cli_study_run(call, &job, err);
    else
        json_decref(options);
    free(items.list.items);
    free(items.path);
    return status;
}
