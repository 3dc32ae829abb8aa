/* qkv recipe: named studies, as files that a user can read and change. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/number.h"
#include "base/temporary.h"
#include "base/text.h"
#include "cli/columns.h"
#include "cli/recipe.h"
#include "qkv/recipe.h"
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
        "A sweep keeps its results in the file -o, SQLite, for export and plot, and shares the "
        "work among --threads processes. A study draws and writes as its command does; "
        "docs/studies.md describes each with its options, and 'qkv recipe NAME --help' lists what "
        "--set takes.\n"
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
        if (kind)
            printf("\n--set NAME=VALUE takes:\n");
        else
            printf(
                "\nIt is a sweep and takes no --set: change a copy of 'qkv recipe %s --print'.\n",
                name);
        qkv_study_field field = QKV_STUDY_FIELD_INIT;
        for (size_t i = 0; kind && qkv_study_get_field(kind, i, &field); i++) {
            if (field.use == QKV_FIELD_WORK) print_set(&field, json_object_get(recipe, "options"));
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

static int load_recipe(qkv_recipe **recipe, const char *path, qkv_error *err) {
    char *text = NULL;
    size_t size = 0;
    int status = qkv_read_file(&text, &size, path, (size_t)256 << 20, err);
    if (status == QKV_OK) status = qkv_recipe_load(recipe, text, size, path, err);
    free(text);
    return status;
}

/* The bundled prompts, unless there are others. */
static int add_prompts(json_t *spec, const sweep_flags *flags, qkv_error *err) {
    if (flags->prompts.n || json_object_get(spec, "prompts")) {
        return sweep_spec_override(spec, flags, err);
    }
    char *path = NULL;
    int status = cli_recipe_find(&path, "prompts.txt", err);
    cli_item item = {path, CLI_PROMPT_LINES};
    sweep_flags bundled = *flags;
    bundled.prompts = (cli_list){.items = &item, .n = 1};
    if (status == QKV_OK) status = sweep_spec_override(spec, &bundled, err);
    free(path);
    return status;
}

/* ---- tables ---- */

static double value_at(const qkv_recipe_result *result, size_t table, size_t row, size_t column) {
    double value = 0;
    (void)qkv_recipe_result_value(result, table, row, column, &value, NULL);
    return value;
}

static void print_means(const qkv_recipe_result *result, size_t at, const qkv_recipe_table *table) {
    int width = 8;
    for (size_t r = 0; r < table->n_rows; r++) {
        const int length = (int)strlen(qkv_recipe_result_row(result, at, r));
        if (length > width) width = length;
    }
    printf("  %-*s", width, "");
    for (size_t c = 0; c < table->n_columns; c++) {
        printf("  %10s", qkv_recipe_result_column(result, at, c));
    }
    putchar('\n');
    for (size_t r = 0; r < table->n_rows; r++) {
        printf("  %-*s", width, qkv_recipe_result_row(result, at, r));
        for (size_t c = 0; c < table->n_columns; c++) {
            const double value = value_at(result, at, r, c);
            if (isnan(value)) {
                printf("  %10s", "-");
            } else {
                qkv_print(stdout, "  %10.4g", value);
            }
        }
        putchar('\n');
    }
}

static void print_heads(const qkv_recipe_result *result, size_t at, const qkv_recipe_table *table) {
    for (size_t r = 0; r < table->n_rows; r++) {
        qkv_print(stdout, "  %2zu. layer %d, head %d: %s %.4g\n", r + 1,
                  (int)value_at(result, at, r, 0), (int)value_at(result, at, r, 1), table->metric,
                  value_at(result, at, r, 2));
    }
}

static int print_result(const qkv_recipe_result *result, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < qkv_recipe_result_n_tables(result) && status == QKV_OK; i++) {
        qkv_recipe_table table = QKV_RECIPE_TABLE_INIT;
        status = qkv_recipe_result_table(result, i, &table, err);
        if (status != QKV_OK) break;
        putchar('\n');
        cli_print_line(table.title);
        (table.kind == QKV_RECIPE_HEADS ? print_heads : print_means)(result, i, &table);
    }
    return status;
}

static json_t *row_json(const qkv_recipe_result *result, size_t at, const qkv_recipe_table *table,
                        size_t row) {
    json_t *values = json_array();
    for (size_t c = 0; c < table->n_columns; c++)
        qkv_json_push(values, qkv_json_real(value_at(result, at, row, c)));
    return json_pack("{s:o, s:o}", "name", qkv_json_text(qkv_recipe_result_row(result, at, row)),
                     "values", values);
}

static json_t *table_json(const qkv_recipe_result *result, size_t at,
                          const qkv_recipe_table *table) {
    json_t *columns = json_array(), *rows = json_array();
    for (size_t c = 0; c < table->n_columns; c++)
        qkv_json_push(columns, qkv_json_text(qkv_recipe_result_column(result, at, c)));
    for (size_t r = 0; r < table->n_rows; r++) qkv_json_push(rows, row_json(result, at, table, r));
    return json_pack("{s:o, s:o, s:o, s:o}", "title", qkv_json_text(table->title), "metric",
                     qkv_json_text(table->metric), "columns", columns, "rows", rows);
}

static int print_json(const qkv_recipe_result *result, const char *title, qkv_error *err) {
    json_t *tables = json_array();
    int status = QKV_OK;
    for (size_t i = 0; i < qkv_recipe_result_n_tables(result) && status == QKV_OK; i++) {
        qkv_recipe_table table = QKV_RECIPE_TABLE_INIT;
        status = qkv_recipe_result_table(result, i, &table, err);
        if (status == QKV_OK) qkv_json_push(tables, table_json(result, i, &table));
    }
    if (status == QKV_OK)
        return cli_print_json(json_pack("{s:o, s:o}", "title",
                                        title ? qkv_json_text(title) : json_null(), "tables",
                                        tables),
                              err);
    json_decref(tables);
    return status;
}

static int print_study(const qkv_recipe *recipe, const char *title, const sweep_work *work,
                       qkv_error *err) {
    qkv_recipe_options wanted = QKV_RECIPE_OPTIONS_INIT;
    qkv_recipe_result *result = NULL;
    wanted.memory_budget = (size_t)work->job->memory << 20;
    wanted.session_progress = cli_progress();
    int status = qkv_recipe_evaluate(recipe, &result, work->model, work->sweep, work->job->output,
                                     &wanted, NULL, err);
    if (status == QKV_OK && work->job->json) {
        status = print_json(result, title, err);
    } else if (status == QKV_OK) {
        if (title) cli_print_line(title);
        status = print_result(result, err);
    }
    qkv_recipe_result_free(result);
    return status;
}

/* ---- the study ---- */

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

static int run_sweep(const qkv_recipe *recipe, const char *title, json_t *spec,
                     const sweep_job *job, qkv_error *err) {
    sweep_work work = {0};
    int status = sweep_work_begin(&work, job, spec, err);
    if (status == QKV_OK) status = qkv_recipe_check(recipe, work.sweep, err);
    if (status == QKV_OK) status = sweep_work_run(&work, err);
    if (status == QKV_OK && sweep_work_leads(&work)) {
        status = print_study(recipe, title, &work, err);
    }
    sweep_work_release(&work);
    return status;
}

/* The only output of a sweep; NULL: none. */
static const char *output_of(const recipe_args *args) {
    return args->study.outputs.n ? args->study.outputs.items[0].value : NULL;
}

/* What belongs to studies. */
static int check_sweep(const recipe_args *args, qkv_error *err) {
    const cli_study *how = &args->study;
    if (how->outputs.n > 1)
        return cli_usage(err, "the results of a sweep go to one file: give -o once");
    if (how->settings.n || how->format || args->set.n || args->parity || args->mean_map ||
        args->phrases || args->needles || args->heads_from || args->results)
        return cli_usage(err, "this recipe is a sweep: it takes -o RESULTS.sqlite and --json, and "
                              "'qkv plot' draws it");
    return QKV_OK;
}

static int run_sweeps(const qkv_recipe *recipe, const recipe_args *args, qkv_error *err) {
    scratch temporary = {0};
    qkv_recipe_info info = QKV_RECIPE_INFO_INIT;
    int status = qkv_recipe_get_info(recipe, &info, err);
    json_t *spec = status == QKV_OK ? qkv_json_parse(info.spec, strlen(info.spec), 0, NULL) : NULL;
    if (status == QKV_OK)
        status = spec ? add_prompts(spec, &args->flags, err) : qkv_fail_memory(err);
    const char *output = output_of(args);
    if (status == QKV_OK && !output) status = scratch_make(&temporary, err);
    const sweep_job job = {.model = args->model,
                           .output = output ? output : temporary.file.name,
                           .threads = args->study.threads,
                           .memory = args->study.memory,
                           .flags = &args->flags,
                           .quiet = !output,
                           .json = args->study.json};
    if (status == QKV_OK) status = run_sweep(recipe, info.title, spec, &job, err);
    scratch_remove(&temporary);
    json_decref(spec);
    return status;
}

static int run_file(const cli_call *call, const char *path, qkv_error *err) {
    const recipe_args *args = call->args;
    qkv_recipe *recipe = NULL;
    json_t *json = NULL;
    int status = sweep_spec_read(&json, path, err);
    if (status == QKV_OK && recipe_is_study(json)) {
        status = recipe_run_study(call, json, path, err);
    } else if (status == QKV_OK) {
        status = load_recipe(&recipe, path, err);
        if (status == QKV_OK) status = check_sweep(args, err);
        if (status == QKV_OK) status = run_sweeps(recipe, args, err);
    }
    qkv_recipe_free(recipe);
    json_decref(json);
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
