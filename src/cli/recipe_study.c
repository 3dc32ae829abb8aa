/*
 * qkv recipe, of one recipe: {"study": KIND, "options": {...}}, or a sweep and its tables. Options of the command line
 * come on top of the file's.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/number.h"
#include "cli/recipe.h"

static int load(qkv_study **out, const json_t *recipe, const char *path, qkv_error *err) {
    char *text = qkv_json_dump(recipe, JSON_REAL_PRECISION(17));
    qkv_error why = {0};
    const int status = text ? qkv_study_load(out, text, &why) : qkv_fail_memory(err);
    free(text);
    if (status == QKV_OK || status == QKV_ERR_MEMORY) return status;
    (void)cli_name_fields(status, &why);
    return qkv_fail(err, status, "%s: %s", path, why.message);
}

/* ---- options ---- */

static int set_one(qkv_study *study, const char *text, qkv_error *err) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return cli_usage(err, "--set is written NAME=VALUE, not '%s'", text);
    char *name = qkv_strndup(text, (size_t)(equals - text));
    int status = name ? QKV_OK : qkv_fail_memory(err);
    /* In place of the recipe's: a list would grow. */
    if (status == QKV_OK) status = qkv_study_set(study, name, NULL, err);
    if (status == QKV_OK) status = qkv_study_set(study, name, equals + 1, err);
    free(name);
    return status;
}

/* An option that is the text of a file, where one is given. */
static int set_file(qkv_study *study, const char *name, const char *path, qkv_error *err) {
    return path ? cli_study_set_file(study, name, path, err) : QKV_OK;
}

/* In place of the one that the recipe has. */
static int set_needles(qkv_study *study, const char *path, qkv_error *err) {
    static const char *const one[] = {"needle", "question", "answer"};
    int status = QKV_OK;
    for (size_t i = 0; path && i < sizeof one / sizeof *one && status == QKV_OK; i++)
        status = qkv_study_set(study, one[i], NULL, err);
    return status == QKV_OK ? set_file(study, "needles", path, err) : status;
}

/* Studies with an option `chat` put prompts together themselves, and then into the model's template. */
static int chats_itself(const json_t *recipe) {
    return json_object_get(json_object_get(recipe, "options"), "chat") != NULL;
}

static int set_chat(qkv_study *study, const cli_chat *chat, qkv_error *err) {
    if (chat->turns.n || chat->show)
        return cli_usage(err, "this study makes its prompts itself, without %s",
                         chat->show ? "--show-prompt" : "--turn");
    if (!chat->on) return cli_chat_check(chat, err);
    int status = chat->system ? qkv_study_set(study, "system", chat->system, err) : QKV_OK;
    if (status == QKV_OK && chat->date) status = qkv_study_set(study, "date", chat->date, err);
    if (status == QKV_OK) status = set_file(study, "chat_template", chat->template_file, err);
    return status == QKV_OK ? qkv_study_set(study, "chat", "true", err) : status;
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

static int set_heads(qkv_study *study, const json_t *options, const recipe_args *args,
                     qkv_error *err) {
    const json_t *top = json_object_get(options, "top");
    size_t wanted = json_is_integer(top) ? (size_t)json_integer_value(top) : 1;
    const char *path = args->heads_from;
    json_t *found = NULL;
    qkv_text heads = {0};
    if (!path) return QKV_OK;
    for (size_t i = 0; i < args->set.n; i++) {
        int64_t number;
        const char *text = args->set.items[i].value;
        if (strncmp(text, "top=", 4) == 0 && qkv_parse_int(text + 4, strlen(text + 4), &number))
            wanted = (size_t)number;
    }
    int status = sweep_spec_read(&found, path, err);
    if (status != QKV_OK) return status;
    const size_t n =
        list_heads(json_array_get(json_object_get(found, "tables"), 0), wanted, &heads);
    if (n < wanted)
        status = qkv_fail(err, QKV_ERR_FORMAT,
                          "%s has %zu heads in its first table, and %zu are wanted; it should be "
                          "what 'qkv recipe ships' or 'sahara' writes with -o FILE.json",
                          path, n, wanted);
    else
        status = heads.failed
                     ? qkv_fail_memory(err)
                     : cli_name_fields(qkv_study_set(study, "heads", heads.data, err), err);
    qkv_text_release(&heads);
    json_decref(found);
    return status;
}

static int has_field(const char *kind, const char *name) {
    qkv_study_field field = QKV_STUDY_FIELD_INIT;
    for (size_t i = 0; qkv_study_get_field(kind, i, &field); i++) {
        if (strcmp(field.name, name) == 0) return 1;
    }
    return 0;
}

/* Options that some studies have. */
static int check_own(const qkv_study *study, const recipe_args *args, qkv_error *err) {
    const struct {
        const char *field, *option;
        int given;
    } own[] = {{"needles", "needles", args->needles != NULL},
               {"phrases", "phrases", args->phrases != NULL},
               {"heads", "heads-from", args->heads_from != NULL},
               {"parity", "parity", args->parity},
               {"mean_map", "mean-map", args->mean_map}};
    qkv_study_info info = QKV_STUDY_INFO_INIT;
    int status = qkv_study_get_info(study, &info, err);
    for (size_t i = 0; i < sizeof own / sizeof *own && status == QKV_OK; i++) {
        if (own[i].given && !has_field(info.kind, own[i].field))
            status = cli_usage(err, "--%s is not for this recipe, whose study is '%s'",
                               own[i].option, info.kind);
    }
    return status;
}

static int set_options(qkv_study *study, const json_t *recipe, const recipe_args *args,
                       qkv_error *err) {
    const json_t *own = json_object_get(recipe, "options");
    int status = check_own(study, args, err);
    if (status == QKV_OK) status = set_needles(study, args->needles, err);
    for (size_t i = 0; i < args->set.n && status == QKV_OK; i++)
        status = set_one(study, args->set.items[i].value, err);
    if (status == QKV_OK) status = set_file(study, "phrases", args->phrases, err);
    if (status == QKV_OK) status = set_heads(study, own, args, err);
    if (status == QKV_OK && args->parity) status = set_one(study, "parity=true", err);
    if (status == QKV_OK && args->mean_map) status = set_one(study, "mean_map=true", err);
    if (status == QKV_OK && args->results && json_object_get(recipe, "sweep"))
        status = cli_usage(err, "this recipe is a sweep: -o RESULTS.sqlite keeps its results, and "
                                "resumes from them");
    if (status == QKV_OK && args->results)
        status = cli_name_fields(qkv_study_set(study, "results", args->results, err), err);
    if (status == QKV_OK && chats_itself(recipe)) status = set_chat(study, &args->flags.chat, err);
    return status == QKV_OK ? cli_study_set(study, "lens", &args->study.settings, err) : status;
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
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: 'prompts' is not a list of texts", path);
    int status = QKV_OK;
    for (size_t i = 0; i < json_array_size(prompts) && status == QKV_OK; i++) {
        const char *text = json_string_value(json_array_get(prompts, i));
        status = text ? add_prompt(to, text, CLI_PROMPT_TEXT, err)
                      : qkv_fail(err, QKV_ERR_FORMAT, "%s: prompt %zu is not a text", path, i);
    }
    return status;
}

/* As many as the study takes: the file of many, or the first of the few. */
static int add_bundled(recipe_prompts *to, const char *kind, qkv_error *err) {
    qkv_study_kind info = QKV_STUDY_KIND_INIT;
    size_t few = 0;
    while (qkv_default_prompt(few)) few++;
    int status = qkv_study_get_kind(kind, &info, err);
    const size_t most = info.most_prompts;
    if (status != QKV_OK || most == 0) return status;
    if (most <= few) {
        for (size_t i = 0; i < most && status == QKV_OK; i++)
            status = add_prompt(to, qkv_default_prompt(i), CLI_PROMPT_TEXT, err);
        return status;
    }
    status = cli_recipe_find(&to->path, "prompts.txt", err);
    return status == QKV_OK ? add_prompt(to, to->path, CLI_PROMPT_LINES, err) : status;
}

static int find_prompts(recipe_prompts *to, const json_t *recipe, const char *kind,
                        const char *path, const cli_chat *chat, qkv_error *err) {
    const json_t *own = json_object_get(recipe, "prompts");
    if (chat->column) return cli_usage(err, "--column is of a CSV file: give it with -f");
    if (own) return add_own(to, own, path, err);
    if (json_object_get(json_object_get(recipe, "sweep"), "prompts")) return QKV_OK;
    return add_bundled(to, kind, err);
}

/* ---- running ---- */

int recipe_run(const cli_call *call, const json_t *recipe, const char *path, qkv_error *err) {
    const recipe_args *args = call->args;
    recipe_prompts found = {0};
    qkv_study_info info = QKV_STUDY_INFO_INIT;
    qkv_study *study = NULL;
    int status = load(&study, recipe, path, err);
    if (status == QKV_OK) status = qkv_study_get_info(study, &info, err);
    if (status == QKV_OK) status = set_options(study, recipe, args, err);
    if (status == QKV_OK && !args->flags.prompts.n)
        status = find_prompts(&found, recipe, info.kind, path, &args->flags.chat, err);
    const cli_list *prompts = args->flags.prompts.n ? &args->flags.prompts : &found.list;
    const cli_chat texts = {.column = args->flags.chat.column, .pattern = args->flags.chat.pattern};
    const cli_study_job job = {.study = study,
                               .kind = info.kind,
                               .how = &args->study,
                               .settings_kind = "lens",
                               .models = {args->model, NULL},
                               .prompts = prompts->n ? prompts : NULL,
                               .parse_special = args->flags.parse_special,
                               .chat = chats_itself(recipe) ? &texts : &args->flags.chat};
    if (status == QKV_OK) status = cli_study_run(call, &job, err);
    qkv_study_free(study);
    free(found.list.items);
    free(found.path);
    return status;
}
