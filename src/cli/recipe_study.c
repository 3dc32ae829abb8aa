/*
 * qkv recipe, of a recipe that is a study: {"study": KIND, "options": {...}}. Options of the command line
 * come on top of the file's.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/recipe.h"

enum { MOST_TEXT = 1 << 20 }; /* bytes */

int recipe_is_study(const json_t *recipe) {
    return json_object_get(recipe, "study") != NULL;
}

static int check_keys(const json_t *recipe, const char *path, qkv_error *err) {
    static const char *const known[] = {"title", "about", "study", "options", "prompts"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)recipe, key, value) {
        size_t i = 0, n = sizeof known / sizeof *known;
        while (i < n && strcmp(key, known[i]) != 0) i++;
        if (i == n)
            return qkv_fail(err, QKV_ERR_FORMAT,
                            "%s: the recipe of a study has no '%s'; it has title, about, study, "
                            "options, prompts",
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

/* An option that is the text of a file. */
static int set_file(json_t *options, const char *name, const char *path, qkv_error *err) {
    char *text = NULL;
    size_t size = 0;
    if (!path) return QKV_OK;
    int status = qkv_read_file(&text, &size, path, MOST_TEXT, err);
    json_t *value = status == QKV_OK ? json_stringn(text, size) : NULL;
    free(text);
    if (status == QKV_OK && !value)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s is not UTF-8 text", path);
    if (status == QKV_OK && json_object_set_new(options, name, value) != 0)
        status = qkv_fail_memory(err);
    return status;
}

/* In place of the one that the recipe has. */
static int set_needles(json_t *options, const char *path, qkv_error *err) {
    static const char *const one[] = {"needle", "question", "answer"};
    for (size_t i = 0; path && i < sizeof one / sizeof *one; i++) json_object_del(options, one[i]);
    return set_file(options, "needles", path, err);
}

static int set_flag(json_t *options, const char *name, qkv_error *err) {
    return json_object_set_new(options, name, json_true()) == 0 ? QKV_OK : qkv_fail_memory(err);
}

/* Studies with an option `chat` put prompts together themselves, and then into the model's template. */
static int chats_itself(const json_t *recipe) {
    return json_object_get(json_object_get(recipe, "options"), "chat") != NULL;
}

static int set_text(json_t *options, const char *name, const char *text, qkv_error *err) {
    return !text || json_object_set_new(options, name, qkv_json_text(text)) == 0
               ? QKV_OK
               : qkv_fail_memory(err);
}

static int set_chat(json_t *options, const cli_chat *chat, qkv_error *err) {
    if (chat->turns.n || chat->show)
        return cli_usage(err, "this study makes its prompts itself, without %s",
                         chat->show ? "--show-prompt" : "--turn");
    if (!chat->on) return cli_chat_check(chat, err);
    int status = set_text(options, "system", chat->system, err);
    if (status == QKV_OK) status = set_text(options, "date", chat->date, err);
    if (status == QKV_OK) status = set_file(options, "chat_template", chat->template_file, err);
    return status == QKV_OK ? set_flag(options, "chat", err) : status;
}

/* ---- heads that another study has found ---- */

static size_t find_column(const json_t *table, const char *name) {
    const json_t *columns = json_object_get(table, "columns");
    size_t i = 0, n = json_array_size(columns);
    while (i < n && strcmp(name, json_string_value(json_array_get(columns, i))
                                     ? json_string_value(json_array_get(columns, i))
                                     : "") != 0)
        i++;
    return i;
}

/* "3.h0,2.h1"; fewer than wanted where the table has no more. */
static size_t list_heads(const json_t *table, size_t wanted, qkv_text *out) {
    const json_t *rows = json_object_get(table, "rows");
    const size_t layer = find_column(table, "layer"), head = find_column(table, "head");
    size_t n = 0;
    for (; n < wanted && n < json_array_size(rows); n++) {
        const json_t *row = json_array_get(rows, n), *l = json_array_get(row, layer),
                     *h = json_array_get(row, head);
        if (!json_is_number(l) || !json_is_number(h)) break;
        qkv_text_printf(out, "%s%.0f.h%.0f", n ? "," : "", json_number_value(l),
                        json_number_value(h));
    }
    return n;
}

static int set_heads(json_t *options, const char *path, qkv_error *err) {
    const json_t *top = json_object_get(options, "top");
    const size_t wanted = json_is_integer(top) ? (size_t)json_integer_value(top) : 1;
    json_t *study = NULL;
    qkv_text heads = {0};
    if (!path) return QKV_OK;
    int status = sweep_spec_read(&study, path, err);
    if (status != QKV_OK) return status;
    const size_t n =
        list_heads(json_array_get(json_object_get(study, "tables"), 0), wanted, &heads);
    if (n < wanted)
        status = qkv_fail(err, QKV_ERR_FORMAT,
                          "%s has %zu heads in its first table, and %zu are wanted; it should be "
                          "what 'qkv recipe ships' or 'sahara' writes with -o FILE.json",
                          path, n, wanted);
    else if (heads.failed || json_object_set_new(options, "heads", json_string(heads.data)) != 0)
        status = qkv_fail_memory(err);
    qkv_text_release(&heads);
    json_decref(study);
    return status;
}

static int make_options(json_t **out, const json_t *recipe, const recipe_args *args,
                        qkv_error *err) {
    const json_t *own = json_object_get(recipe, "options");
    json_t *options = *out = own ? json_deep_copy(own) : json_object();
    if (!options) return qkv_fail_memory(err);
    int status = set_needles(options, args->needles, err);
    if (status == QKV_OK) status = set_options(options, &args->set, err);
    if (status == QKV_OK) status = set_file(options, "phrases", args->phrases, err);
    if (status == QKV_OK) status = set_heads(options, args->heads_from, err);
    if (status == QKV_OK && args->parity) status = set_flag(options, "parity", err);
    if (status == QKV_OK && args->mean_map) status = set_flag(options, "mean_map", err);
    if (status == QKV_OK && chats_itself(recipe))
        status = set_chat(options, &args->flags.chat, err);
    return status;
}

/* ---- prompts ---- */

/* Those of the recipe, or some that come with qkv. */
typedef struct recipe_prompts {
    cli_list list;
    char *path; /* of a file that it names */
} recipe_prompts;

static int add_prompt(recipe_prompts *to, const char *value, int tag, qkv_error *err) {
    const cli_item item = {value, tag};
    return QKV_PUSH(to->list.items, to->list.capacity, to->list.n, item) ? QKV_OK
                                                                         : qkv_fail_memory(err);
}

static int add_own(recipe_prompts *to, const json_t *prompts, const char *path, qkv_error *err) {
    if (json_array_size(prompts) == 0)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: 'prompts' is no list of texts", path);
    int status = QKV_OK;
    for (size_t i = 0; i < json_array_size(prompts) && status == QKV_OK; i++) {
        const char *text = json_string_value(json_array_get(prompts, i));
        status = text ? add_prompt(to, text, CLI_PROMPT_TEXT, err)
                      : qkv_fail(err, QKV_ERR_FORMAT, "%s: prompt %zu is no text", path, i);
    }
    return status;
}

/* As many as the study takes: the file of many, or the first of the few. */
static int add_bundled(recipe_prompts *to, const char *kind, qkv_error *err) {
    size_t least = 0, most = 0, few = 0;
    int status = QKV_OK;
    while (qkv_default_prompt(few)) few++;
    if (!qkv_study_kind_prompts(kind, &least, &most) || most == 0) return QKV_OK;
    if (most <= few) {
        for (size_t i = 0; i < most && status == QKV_OK; i++)
            status = add_prompt(to, qkv_default_prompt(i), CLI_PROMPT_TEXT, err);
        return status;
    }
    status = cli_recipe_find(&to->path, "prompts.txt", err);
    return status == QKV_OK ? add_prompt(to, to->path, CLI_PROMPT_LINES, err) : status;
}

static int find_prompts(recipe_prompts *to, const json_t *recipe, const char *path,
                        const cli_chat *chat, qkv_error *err) {
    const json_t *own = json_object_get(recipe, "prompts");
    if (chat->column) return cli_usage(err, "--column is of a CSV file: give it with -f");
    if (own) return add_own(to, own, path, err);
    return add_bundled(to, json_string_value(json_object_get(recipe, "study")), err);
}

/* ---- running ---- */

int recipe_run_study(const cli_call *call, const json_t *recipe, const char *path, qkv_error *err) {
    const recipe_args *args = call->args;
    recipe_prompts found = {0};
    json_t *options = NULL;
    int status = check_keys(recipe, path, err);
    if (status == QKV_OK) status = make_options(&options, recipe, args, err);
    if (status == QKV_OK && !args->flags.prompts.n)
        status = find_prompts(&found, recipe, path, &args->flags.chat, err);
    const cli_list *prompts = args->flags.prompts.n ? &args->flags.prompts : &found.list;
    const cli_chat texts = {.column = args->flags.chat.column, .pattern = args->flags.chat.pattern};
    cli_study_job job = {.kind = json_string_value(json_object_get(recipe, "study")),
                         .how = &args->study,
                         .model = args->model,
                         .prompts = prompts->n ? prompts : NULL,
                         .parse_special = args->flags.parse_special,
                         .chat = chats_itself(recipe) ? &texts : &args->flags.chat,
                         .options = options,
                         .results = args->results,
                         .shows_progress = 1};
    if (status == QKV_OK)
        status = cli_study_run(call, &job, err); /* takes the options */
    else
        json_decref(options);
    free(found.list.items);
    free(found.path);
    return status;
}
