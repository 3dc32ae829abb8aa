/* qkv recipe: named studies, as files that a user can read and change. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/text.h"
#include "cli/columns.h"
#include "cli/recipe.h"
#include "qkv/study.h"

static const recipe_args defaults;

static const cli_option options[] = {
    CLI_MODEL_OPTION(recipe_args),
    SWEEP_PROMPT_OPTIONS(recipe_args),
    {0, "print", NULL, "print the recipe and compute nothing", CLI_FLAG,
     offsetof(recipe_args, print), 1, 0, 0},
    {0, "set", "NAME=VALUE", "an option of a study, in place of the recipe's; may be repeated",
     CLI_LIST, offsetof(recipe_args, set), 0, 0, 0},
    {0, "parity", NULL, "what the paper's own code does where it differs: --set parity=true",
     CLI_FLAG, offsetof(recipe_args, parity), 1, 0, 0},
    {0, "mean-map", NULL, "the mean map over the prompts too: --set mean_map=true", CLI_FLAG,
     offsetof(recipe_args, mean_map), 1, 0, 0},
    {0, "phrases", "FILE", "phrases to look for in texts, one per line", CLI_PATH,
     offsetof(recipe_args, phrases), 0, 0, 0},
    {0, "needles", "FILE",
     "needles of retrieval-heads, a JSON object per line: needle, question, answer", CLI_PATH,
     offsetof(recipe_args, needles), 0, 0, 0},
    {0, "heads-from", "FILE.json",
     "silence the heads that a study has found: the first --set top=N (default 1) of its first "
     "table",
     CLI_PATH, offsetof(recipe_args, heads_from), 0, 0, 0},
    {0, "resume", "RESULTS",
     "store what a long study computes in this file, SQLite, and continue from what it holds",
     CLI_PATH, offsetof(recipe_args, results), 0, 0, 0},
    CLI_STUDY_OPTIONS(recipe_args),
};

static int run_recipe(const cli_call *call, qkv_error *err);
static int help_recipe(const char *name, qkv_error *err);

const cli_command cli_command_recipe = {
    .name = "recipe",
    .summary = "run a named study, or list them",
    .synopsis = "[NAME|FILE.json] [-m MODEL] [-p TEXT | -f FILE | --file FILE]... "
                "[--set NAME=VALUE]... [--json] [-o OUT]... [--print]",
    .description =
        "Without a name, lists the recipes. A recipe is a sweep and tables of its results, or a "
        "study and its options, in a JSON file: print it, change it, and give the changed file in "
        "place of the name. Without prompts it uses twenty paragraphs that come with qkv.\n"
        "\n"
        "A sweep is the study effects. With -o OUT.sqlite its results are kept, for export and plot, "
        "and --threads processes share the work. A recipe draws and writes as the command of its "
        "study does; docs/studies.md describes each with its options, and 'qkv recipe NAME --help' "
        "lists what --set takes.\n"
        "\n"
        "  qkv recipe undifferentiated -o q.sqlite\n"
        "  qkv recipe ships -p 'The river runs to the' -o ships.png\n"
        "  qkv recipe head-importance --print >mine.json\n"
        "  qkv recipe mine.json -m model.gguf -f prompts.txt\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .max_operands = 1,
    .run = run_recipe,
    .help = help_recipe,
};

/* ---- the list ---- */

static int is_recipe(const struct dirent *entry) {
    return strcmp(qkv_path_suffix(entry->d_name), "json") == 0;
}

/* One line of the list; or an entry of `json`, where that is not NULL. */
static int print_entry(const char *directory, const char *name, json_t *json, qkv_error *err) {
    qkv_text path = {0};
    json_t *recipe = NULL;
    qkv_text_printf(&path, "%s/%s", directory, name);
    const int status =
        path.failed ? qkv_fail_memory(err) : sweep_spec_read(&recipe, path.data, err);
    const char *title = json_string_value(json_object_get(recipe, "title"));
    const int length = (int)(strlen(name) - strlen(".json"));
    if (status == QKV_OK && json) {
        qkv_json_push(json, json_pack("{s:o, s:s}", "name", qkv_json_string(name, (size_t)length),
                                      "title", title ? title : ""));
    } else if (status == QKV_OK) {
        printf("%-22.*s  ", length, name);
        cli_print_line(title ? title : "");
    }
    json_decref(recipe);
    qkv_text_release(&path);
    return status;
}

/* The recipes that come with qkv, as files of a folder. */
typedef struct recipe_list {
    char *directory;
    struct dirent **entries;
    int n;
} recipe_list;

/* Release it also after a failure. */
static int find_recipes(recipe_list *list, qkv_error *err) {
    *list = (recipe_list){0};
    const int status = cli_recipe_find(&list->directory, "prompts.txt", err);
    if (status != QKV_OK) return status;
    *strrchr(list->directory, '/') = '\0';
    list->n = scandir(list->directory, &list->entries, is_recipe, alphasort);
    if (list->n >= 0) return QKV_OK;
    return qkv_fail(err, QKV_ERR_IO, "cannot read the folder %s", list->directory);
}

static void release_recipes(recipe_list *list) {
    for (int i = 0; i < list->n; i++) free(list->entries[i]);
    free(list->entries);
    free(list->directory);
}

static int list_recipes(int as_json, qkv_error *err) {
    recipe_list list;
    json_t *json = as_json ? json_array() : NULL;
    int status = find_recipes(&list, err);
    for (int i = 0; i < list.n && status == QKV_OK; i++) {
        status = print_entry(list.directory, list.entries[i]->d_name, json, err);
    }
    release_recipes(&list);
    if (status == QKV_OK && json) return cli_print_json(json_pack("{s:o}", "recipes", json), err);
    json_decref(json);
    return status;
}

/* ---- one recipe ---- */

static int fail_name(const char *name, qkv_error *err) {
    recipe_list list;
    qkv_nearest near = qkv_nearest_of(name, strlen(name));
    find_recipes(&list, NULL);
    cli_nearest_command(&near, "recipe");
    for (int i = 0; i < list.n; i++) {
        char known[QKV_NEAREST_SIZE];
        const char *file = list.entries[i]->d_name;
        snprintf(known, sizeof known, "%.*s", (int)(strlen(file) - strlen(".json")), file);
        qkv_nearest_try(&near, known);
    }
    release_recipes(&list);
    return cli_usage(err, "there is no recipe '%s'%s; 'qkv recipe' lists them", name,
                     qkv_nearest_hint(&near));
}

/* A file of the user's, or one that comes with qkv. */
static int find_recipe(char **path, const char *name, qkv_error *err) {
    *path = NULL;
    if (strchr(name, '/') || strcmp(qkv_path_suffix(name), "json") == 0) {
        *path = qkv_strdup(name);
        return *path ? QKV_OK : qkv_fail_memory(err);
    }
    qkv_text file = {0};
    qkv_text_printf(&file, "%s.json", name);
    int status = file.failed ? qkv_fail_memory(err) : cli_recipe_find(path, file.data, err);
    qkv_text_release(&file);
    if (status == QKV_ERR_IO) {
        status = fail_name(name, err);
    }
    return status;
}

/* ---- help about one ---- */

/* One field of a study: what it is, and the recipe's value. */
static void print_set(const qkv_study_field *field, const json_t *set) {
    const json_t *value = json_object_get(set, field->name);
    qkv_text line = {0};
    qkv_text_printf(&line, "  %s: %s", field->name, field->help);
    if (field->words) qkv_text_printf(&line, "; %s", field->words);
    if (value) qkv_text_puts(&line, "; here ");
    if (value) qkv_json_append_value(&line, value);
    cli_print_paragraph(cli_shown(&line) + 2, 2);
    qkv_text_release(&line);
}

static int help_recipe(const char *name, qkv_error *err) {
    char *path = NULL;
    json_t *recipe = NULL;
    int status = find_recipe(&path, name, err);
    if (status == QKV_OK) status = sweep_spec_read(&recipe, path, err);
    const char *title = json_string_value(json_object_get(recipe, "title")),
               *about = json_string_value(json_object_get(recipe, "about")),
               *kind = json_string_value(json_object_get(recipe, "study"));
    if (status == QKV_OK) {
        printf("Usage: qkv recipe %s [OPTION]...\n\n", name);
        if (title) cli_print_paragraph(title, 0);
        if (about) cli_print_paragraph(about, 0);
        printf("\n--set NAME=VALUE takes:\n");
        qkv_study_field field = QKV_STUDY_FIELD_INIT;
        const json_t *set = json_object_get(recipe, kind ? "options" : "sweep");
        for (size_t i = 0; qkv_study_get_field(kind ? kind : RECIPE_SWEEP, i, &field); i++) {
            if (field.use == QKV_FIELD_WORK) print_set(&field, set);
        }
        printf("\n'qkv recipe --help' has the options of all recipes.\n");
    }
    json_decref(recipe);
    free(path);
    return status;
}

static int print_file(const char *path, qkv_error *err) {
    char *text = NULL;
    size_t size = 0;
    const int status = qkv_read_file(&text, &size, path, (size_t)16 << 20, err);
    if (status == QKV_OK) fwrite(text, 1, size, stdout);
    free(text);
    return status;
}

static int run_file(const cli_call *call, const char *path, qkv_error *err) {
    json_t *recipe = NULL;
    int status = sweep_spec_read(&recipe, path, err);
    if (status == QKV_OK) status = recipe_run(call, recipe, path, err);
    json_decref(recipe);
    return status;
}

static int run_recipe(const cli_call *call, qkv_error *err) {
    const recipe_args *args = call->args;
    if (args->print && (!call->n_operands || args->study.outputs.n)) {
        return cli_usage(err, "--print wants a recipe, and computes nothing: leave out -o");
    }
    if (args->print && args->study.json) {
        return cli_usage(err, "--print prints the recipe, which is JSON: leave out --json");
    }
    if (call->n_operands == 0 &&
        (args->study.outputs.n || args->model || args->flags.prompts.n || args->flags.chat.on)) {
        return cli_usage(err, "which recipe? 'qkv recipe' lists them");
    }
    if (call->n_operands == 0) return list_recipes(args->study.json, err);
    char *path = NULL;
    int status = find_recipe(&path, call->operands[0], err);
    if (status == QKV_OK) status = args->print ? print_file(path, err) : run_file(call, path, err);
    free(path);
    return status;
}
