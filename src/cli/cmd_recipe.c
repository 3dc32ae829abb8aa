/* qkv recipe: named studies, as files that a user can read and change. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/temporary.h"
#include "base/text.h"
#include "cli/recipe.h"
#include "cli/sweep.h"

typedef struct recipe_args {
    const char *model;
    sweep_flags flags;
    const char *output;
    int print;
    int64_t threads, memory;
} recipe_args;

static const recipe_args defaults = {0};

static const cli_option options[] = {
    CLI_MODEL_OPTION(recipe_args),
    SWEEP_PROMPT_OPTIONS(recipe_args),
    {0, "print", NULL, "print the recipe and compute nothing", CLI_FLAG,
     offsetof(recipe_args, print), 1, 0, 0},
    {'t', "threads", "N", "processes to share the work (default 0: one for every core)",
     CLI_INTEGER, offsetof(recipe_args, threads), 0, 0, 1024},
    CLI_MEMORY_OPTION(recipe_args),
    {'o', "output", "RESULTS", "keep the results in this file, SQLite, for export and plot",
     CLI_TEXT, offsetof(recipe_args, output), 0, 0, 0},
};

static int run_recipe(const cli_call *call, qkv_error *err);

const cli_command cli_command_recipe = {
    .name = "recipe",
    .summary = "run a named study, or list them",
    .synopsis = "[NAME|FILE.json] [-m MODEL] [-p TEXT | -f FILE]... [-o RESULTS.sqlite | --print]",
    .description =
        "Without a name, lists the recipes. A recipe is a sweep and tables of its results, in a "
        "JSON file: print it, change it, and give the changed file in place of the name. Without "
        "prompts it uses twenty paragraphs that come with qkv.\n"
        "\n"
        "  qkv recipe undifferentiated -o q.sqlite\n"
        "  qkv recipe head-importance --print >mine.json\n"
        "  qkv recipe mine.json -m model.gguf -f prompts.txt\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .max_operands = 1,
    .run = run_recipe,
};

/* ---- the list ---- */

static int is_recipe(const struct dirent *entry) {
    return strcmp(qkv_path_suffix(entry->d_name), "json") == 0;
}

static int print_entry(const char *directory, const char *name, qkv_error *err) {
    qkv_text path = {0};
    json_t *recipe = NULL;
    qkv_text_printf(&path, "%s/%s", directory, name);
    const int status =
        path.failed ? qkv_fail_memory(err) : sweep_spec_read(&recipe, path.data, err);
    const char *title = json_string_value(json_object_get(recipe, "title"));
    if (status == QKV_OK) {
        printf("%-22.*s  ", (int)(strlen(name) - strlen(".json")), name);
        cli_print_line(title ? title : "");
    }
    json_decref(recipe);
    qkv_text_release(&path);
    return status;
}

static int list_recipes(qkv_error *err) {
    char *directory = NULL;
    struct dirent **entries = NULL;
    int status = cli_recipe_find(&directory, "prompts.txt", err);
    if (status != QKV_OK) return status;
    *strrchr(directory, '/') = '\0';
    const int n = scandir(directory, &entries, is_recipe, alphasort);
    if (n < 0) status = qkv_fail(err, QKV_ERR_IO, "cannot read the folder %s", directory);
    for (int i = 0; i < n; i++) {
        if (status == QKV_OK) status = print_entry(directory, entries[i]->d_name, err);
        free(entries[i]);
    }
    free(entries);
    free(directory);
    return status;
}

/* ---- one recipe ---- */

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
        status = cli_usage(err, "there is no recipe '%s'; 'qkv recipe' lists them", name);
    }
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

static int check_recipe(const json_t *recipe, const char *path, qkv_error *err) {
    static const char *const known[] = {"title", "about", "sweep", "tables", "greedy"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)recipe, key, value) {
        size_t i = 0, n = sizeof known / sizeof *known;
        while (i < n && strcmp(key, known[i]) != 0) i++;
        if (i == n) {
            return qkv_fail(err, QKV_ERR_FORMAT,
                            "%s: a recipe has no '%s'; it has title, about, sweep, tables, greedy",
                            path, key);
        }
    }
    if (!json_is_object(json_object_get(recipe, "sweep"))) {
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: the recipe has no sweep", path);
    }
    int status = recipe_tables_check(json_object_get(recipe, "tables"), err);
    const json_t *greedy = json_object_get(recipe, "greedy");
    if (status == QKV_OK && greedy) status = recipe_greedy_check(greedy, err);
    return status;
}

/* The bundled prompts, unless there are others. */
static int add_prompts(json_t *spec, const sweep_flags *flags, qkv_error *err) {
    if (flags->prompts.n || json_object_get(spec, "prompts")) {
        return sweep_spec_override(spec, flags, err);
    }
    char *path = NULL;
    int status = cli_recipe_find(&path, "prompts.txt", err);
    cli_item item = {path, CLI_PROMPT_FILE};
    sweep_flags bundled = *flags;
    bundled.prompts = (cli_list){.items = &item, .n = 1};
    if (status == QKV_OK) status = sweep_spec_override(spec, &bundled, err);
    free(path);
    return status;
}

static int print_results(const json_t *recipe, const json_t *spec, const recipe_args *args,
                         const char *results, qkv_error *err) {
    const json_t *greedy = json_object_get(recipe, "greedy");
    const char *title = json_string_value(json_object_get(recipe, "title"));
    if (title) cli_print_line(title);
    int status = recipe_tables_print(json_object_get(recipe, "tables"), results, err);
    if (status == QKV_OK && greedy) {
        status = recipe_greedy_print(greedy, spec, results, args->model, args->memory, err);
    }
    return status;
}

/* Results that nobody wants to keep go to a file in TMPDIR or /tmp; SQLite may put two beside it. */
typedef struct scratch {
    qkv_temporary file;
    int beside[2];
} scratch;

static int scratch_make(scratch *made, qkv_error *err) {
    const char *given = getenv("TMPDIR"), *directory = given && given[0] ? given : "/tmp";
    static const char *const suffixes[] = {"-wal", "-shm"};
    qkv_text path = {0};
    qkv_text_printf(&path, "%s/qkv-recipe", directory);
    const int file = path.failed ? -1 : qkv_temporary_create(&made->file, path.data, 0600);
    qkv_text_release(&path);
    if (file < 0)
        return qkv_fail(err, QKV_ERR_IO, "cannot make a file in %s: %s", directory,
                        strerror(errno));
    close(file);
    for (int i = 0; i < 2; i++) {
        qkv_text name = {0};
        qkv_text_printf(&name, "%s%s", made->file.name, suffixes[i]);
        made->beside[i] = name.failed ? -1 : qkv_temporary_note(name.data);
        qkv_text_release(&name);
    }
    return QKV_OK;
}

static void scratch_remove(scratch *made) {
    if (!made->file.name) return;
    for (int i = 0; i < 2; i++) qkv_temporary_forget(made->beside[i]);
    qkv_temporary_remove(&made->file);
}

static int work(const json_t *recipe, const recipe_args *args, qkv_error *err) {
    scratch temporary = {0};
    json_t *spec = json_deep_copy(json_object_get(recipe, "sweep"));
    int leads = 1;
    int status = spec ? add_prompts(spec, &args->flags, err) : qkv_fail_memory(err);
    if (status == QKV_OK && !args->output) status = scratch_make(&temporary, err);
    const char *results = args->output ? args->output : temporary.file.name;
    const sweep_job job = {.model = args->model,
                           .output = results,
                           .threads = args->threads,
                           .memory = args->memory,
                           .quiet = !args->output};
    if (status == QKV_OK) status = sweep_work(json_incref(spec), &job, &leads, err);
    if (status == QKV_OK && leads) status = print_results(recipe, spec, args, results, err);
    scratch_remove(&temporary);
    json_decref(spec);
    return status;
}

static int run_recipe(const cli_call *call, qkv_error *err) {
    const recipe_args *args = call->args;
    if (args->print && (!call->n_operands || args->output)) {
        return cli_usage(err, "--print wants a recipe, and computes nothing: leave out -o");
    }
    if (call->n_operands == 0 && (args->output || args->model || args->flags.prompts.n)) {
        return cli_usage(err, "which recipe? 'qkv recipe' lists them");
    }
    if (call->n_operands == 0) return list_recipes(err);
    char *path = NULL;
    json_t *recipe = NULL;
    int status = find_recipe(&path, call->operands[0], err);
    if (status == QKV_OK && args->print) {
        status = print_file(path, err);
    } else if (status == QKV_OK) {
        status = sweep_spec_read(&recipe, path, err);
        if (status == QKV_OK) status = check_recipe(recipe, path, err);
        if (status == QKV_OK) status = work(recipe, args, err);
    }
    json_decref(recipe);
    free(path);
    return status;
}
