/* qkv reproduce: a figure or chart made again from the recipe in its file, and compared with it. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/number.h"
#include "cli/columns.h"
#include "cli/inputs.h"
#include "qkv/reproduce.h"

typedef struct reproduce_args {
    const char *model, *other, *results, *recipes, *output;
    int check;
    int64_t threads, memory;
} reproduce_args;

static const reproduce_args defaults = {0};

/* Where versions differ, so may the last digits of weights between 0 and 1. */
static const double TOLERANCE = 1e-4;

static const cli_option options[] = {
    {'m', "model", "MODEL",
     "make it with this model, whatever its hash (default: the one with the recipe's hash, among "
     "QKV_MODEL, the model shipped with qkv and those on this machine)",
     CLI_MODEL, offsetof(reproduce_args, model), 0, 0, 0},
    {0, "other", "MODEL", "the second model of a study of two, whatever its hash", CLI_MODEL,
     offsetof(reproduce_args, other), 0, 0, 0},
    {0, "results", "FILE", "of a chart: the results of the sweep, SQLite", CLI_PATH,
     offsetof(reproduce_args, results), 0, 0, 0},
    {0, "recipes", "DIR", "where an ID is looked for (default QKV_RECIPES, or this folder)",
     CLI_PATH, offsetof(reproduce_args, recipes), 0, 0, 0},
    {0, "check", NULL, "compare the numbers; without -o nothing is written", CLI_FLAG,
     offsetof(reproduce_args, check), 1, 0, 0},
    CLI_THREADS_OPTION(reproduce_args),
    CLI_MEMORY_OPTION(reproduce_args),
    {'o', "output", "OUT",
     "file to write (default reproduced-ID in this folder, as the kind of file it was)", CLI_PATH,
     offsetof(reproduce_args, output), 0, 0, 0},
};

static int run_reproduce(const cli_call *call, qkv_error *err);

const cli_command cli_command_reproduce = {
    .name = "reproduce",
    .summary = "make a figure, chart or study again from its own file, and check its numbers",
    .synopsis = "FIGURE|ID [-m MODEL] [--other MODEL] [--results FILE] [--check] [-o OUT]",
    .description =
        "Every figure, report, chart and study carries its recipe: what was asked for, the hash of the "
        "model or of the sweep's results, and a summary of its numbers. This command reads it from "
        "a PNG, SVG, PDF, HTML, Markdown, JSON or safetensors file, finds the model by its hash, "
        "and makes the same again. In place of a file, the id at the end of the small print (8 "
        "characters) finds a recipe in the folder --recipes, QKV_RECIPES or this one.\n"
        "\n"
        "With --check it says whether the numbers came out again, and exits with 1 if not. They "
        "must be the same bit for bit where qkv, ggml and the processor's abilities are. Else "
        "those that the recipe keeps must be within 1e-4: up to 16 values of a panel, its extremes "
        "and its norm; other values cannot be compared. What the recipe states beside (layer, "
        "head, range, the edits of a panel, ...) must be the same, too.\n"
        "\n"
        "Nothing in a file is executed or used as the name of a file.\n"
        "\n"
        "  qkv reproduce figure.png --check\n"
        "  qkv reproduce figure.pdf -o again.svg\n"
        "  qkv reproduce chart.png --results results.sqlite --check\n"
        "  qkv reproduce 1f0c2a9b --recipes figures/\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_reproduce,
};

/* ---- the recipe ---- */

static int is_id(const char *text) {
    return strlen(text) == 8 && strspn(text, "0123456789abcdef") == 8;
}

static int has_format(const struct dirent *entry) {
    static const char *const suffixes[] = {"json", "png", "svg",        "pdf",
                                           "html", "md",  "safetensors"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        if (strcmp(qkv_path_suffix(entry->d_name), suffixes[i]) == 0) return 1;
    }
    return 0;
}

/* The file's recipe if that is its id; else NULL. */
static qkv_reproduction *open_entry(const char *folder, const char *name, const char *id) {
    qkv_reproduction_info info = QKV_REPRODUCTION_INFO_INIT;
    qkv_reproduction *r = NULL;
    qkv_text path = {0};
    qkv_text_printf(&path, "%s/%s", folder, name);
    if (!path.failed) qkv_reproduction_open(&r, path.data, NULL);
    qkv_text_release(&path);
    if (r && qkv_reproduction_get_info(r, &info, NULL) == QKV_OK && strcmp(info.id, id) == 0) {
        qkv_text shown = {0};
        qkv_text_append_visible(&shown, name, strlen(name));
        fprintf(stderr, "qkv: the recipe is in %s\n", cli_shown(&shown));
        qkv_text_release(&shown);
        return r;
    }
    qkv_reproduction_free(r);
    return NULL;
}

static int find_id(qkv_reproduction **r, const char *id, const char *given, qkv_error *err) {
    const char *set = getenv("QKV_RECIPES");
    const char *folder = given ? given : set && set[0] ? set : ".";
    struct dirent **entries = NULL;
    const int n = scandir(folder, &entries, has_format, alphasort);
    if (n < 0) return qkv_fail(err, QKV_ERR_IO, "cannot read the folder %s", folder);
    for (int i = 0; i < n; i++) {
        if (!*r) *r = open_entry(folder, entries[i]->d_name, id);
        free(entries[i]);
    }
    free(entries);
    if (*r) return QKV_OK;
    return qkv_fail(err, QKV_ERR_IO, "no file in %s has the recipe %s; --recipes names a folder",
                    folder, id);
}

static int open_recipe(qkv_reproduction **r, const char *operand, const reproduce_args *args,
                       qkv_error *err) {
    if (is_id(operand) && access(operand, F_OK) != 0) {
        return find_id(r, operand, args->recipes, err);
    }
    if (args->recipes) {
        return cli_usage(err, "--recipes is where an id is looked for, and %s is a file", operand);
    }
    return qkv_reproduction_open(r, operand, err);
}

/* ---- the model ---- */

/* Opens it, unless it has another hash or cannot be opened; fails only when memory is short. */
static int try_path(qkv_model **out, const char *path, const char *hash, qkv_error *err) {
    char found[33];
    int status = qkv_model_open(out, path, NULL);
    if (status == QKV_OK) status = qkv_model_hash(*out, found, NULL);
    if (status == QKV_OK && strcmp(found, hash) == 0) return QKV_OK;
    qkv_model_free(*out);
    *out = NULL;
    return status == QKV_ERR_MEMORY ? qkv_fail_memory(err) : QKV_OK;
}

/* Those whose file has the recipe's name, or the others. */
static int try_list(qkv_model **out, const qkv_model_list *list, const qkv_reproduction_info *info,
                    int named, qkv_error *err) {
    const qkv_model_place_info *place;
    int status = QKV_OK;
    for (size_t i = 0; !*out && status == QKV_OK && (place = qkv_model_list_get(list, i)); i++) {
        if (!place->path[0]) continue;
        if ((strcmp(qkv_path_model(place->path), info->model) == 0) != named) continue;
        fprintf(stderr, "qkv: looking at %s\n", place->name);
        if (cli_stop_asked()) break;
        status = try_path(out, place->path, info->model_hash, err);
    }
    return status;
}

static int find_model(qkv_model **out, const qkv_reproduction_info *info, const char *option,
                      qkv_error *err) {
    qkv_model_place *place = NULL;
    qkv_model_list *list = NULL;
    int status = cli_model_find(&place, NULL, NULL);
    if (status == QKV_OK)
        status = try_path(out, qkv_model_place_get_info(place)->path, info->model_hash, err);
    qkv_model_place_free(place);
    if (status != QKV_ERR_MEMORY && !*out) status = qkv_model_list_new(&list, NULL);
    if (status == QKV_OK && !*out) status = try_list(out, list, info, 1, err);
    if (status == QKV_OK && !*out) status = try_list(out, list, info, 0, err);
    qkv_model_list_free(list);
    if (status == QKV_ERR_MEMORY) return qkv_fail_memory(err);
    if (*out) return QKV_OK;
    return qkv_fail(err, QKV_ERR_IO,
                    "no model on this machine has the hash %s; it was called %s: give it with %s",
                    info->model_hash, info->model, option);
}

/* option: what the user would give it with. */
static int open_model(qkv_model **out, const char *given, const qkv_reproduction_info *info,
                      const char *option, qkv_error *err) {
    char hash[33];
    if (!given) return find_model(out, info, option, err);
    int status = cli_model_open(out, given, err);
    if (status == QKV_OK) status = qkv_model_hash(*out, hash, err);
    if (status == QKV_OK && strcmp(hash, info->model_hash) != 0) {
        fprintf(stderr, "qkv: warning: another model: its hash is %s, the recipe's %s\n", hash,
                info->model_hash);
    }
    return status;
}

/* ---- the check ---- */

/* The most numbers that the recipe keeps of a panel: values, its extremes and its norm. */
static size_t count_kept(const qkv_reproduction_info *info) {
    json_t *recipe = qkv_json_parse(info->recipe, strlen(info->recipe), JSON_ALLOW_NUL, NULL);
    const json_t *panels = json_object_get(recipe, "panels");
    size_t most = 0;
    for (size_t i = 0; i < json_array_size(panels); i++) {
        const json_t *sample = json_object_get(json_array_get(panels, i), "sample");
        if (json_array_size(sample) > most) most = json_array_size(sample);
    }
    json_decref(recipe);
    return most + 3;
}

static void report_close(const qkv_reproduction_difference *d, const qkv_reproduction_info *info) {
    qkv_print(stdout,
              "made with another version or processor: the digests of %zu of %zu panels differ; of "
              "the numbers that the recipe keeps (up to %zu of a panel) none differs",
              d->n_different, d->n_panels, count_kept(info));
    if (d->largest > 0) qkv_print(stdout, " by more than %.3g", d->largest);
    printf("; other values cannot be compared\n");
}

static int report(const qkv_reproduction_difference *d, const qkv_reproduction_info *info,
                  qkv_error *err) {
    if (!d->same_shape) {
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "it is not the same: other panels, or panels of another size");
    }
    if (d->same_bits) {
        printf("the same, bit for bit: %zu panel%s\n", d->n_panels, d->n_panels == 1 ? "" : "s");
        return QKV_OK;
    }
    if (!d->same_versions && d->largest <= TOLERANCE) {
        report_close(d, info);
        return QKV_OK;
    }
    if (d->largest == 0) {
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "the numbers differ in %zu of %zu panels, in values that the recipe does "
                        "not keep",
                        d->n_different, d->n_panels);
    }
    return qkv_fail(err, QKV_ERR_FORMAT,
                    "the numbers differ in %zu of %zu panels, most in row %zu, column %zu: by %.3g",
                    d->n_different, d->n_panels, d->row + 1, d->col + 1, d->largest);
}

/* ---- the output ---- */

/* A name that nothing has yet. */
static char *unused_name(const qkv_reproduction_info *info) {
    const char *format = strcmp(info->format, "recipe") == 0 ? "png" : info->format;
    for (int i = 1; i < 1000; i++) {
        qkv_text name = {0};
        qkv_text_printf(&name, "reproduced-%s", info->id);
        if (i > 1) qkv_text_printf(&name, "-%d", i);
        qkv_text_printf(&name, ".%s", format);
        if (!name.failed && access(name.data, F_OK) != 0) return name.data;
        qkv_text_release(&name);
    }
    return NULL;
}

/* NULL: nothing is written. */
static int choose_output(char **out, const reproduce_args *args, const qkv_reproduction_info *info,
                         qkv_error *err) {
    *out = args->output ? qkv_strdup(args->output) : args->check ? NULL : unused_name(info);
    if (!*out) return args->check && !args->output ? QKV_OK : qkv_fail_memory(err);
    if (!cli_is_stdout(*out)) return qkv_output_check(*out, err);
    if (strcmp(info->format, "recipe") == 0) {
        return cli_usage(err, "a recipe by itself does not say what -o - is to be: name a file");
    }
    if (args->check) {
        return cli_usage(err, "--check and -o - both write to standard output: name a file");
    }
    return cli_stdout_check(info->format, err);
}

/* Standard output gets the kind of file that it was. */
static int write_plot(qkv_plot *plot, const qkv_reproduction_info *info, const char *output,
                      qkv_error *err) {
    char *bytes = NULL;
    size_t n_bytes = 0;
    if (!cli_is_stdout(output)) return qkv_plot_write(plot, output, err);
    const int status = qkv_plot_render(plot, info->format, &bytes, &n_bytes, err);
    return cli_print_bytes(status, bytes, n_bytes);
}

static int write_study(const qkv_study *study, const qkv_reproduction_info *info,
                       const char *output, qkv_error *err) {
    char *bytes = NULL;
    size_t n_bytes = 0;
    if (!cli_is_stdout(output)) return cli_name_fields(qkv_study_write(study, output, err), err);
    const int status =
        cli_name_fields(qkv_study_render(study, info->format, &bytes, &n_bytes, err), err);
    return cli_print_bytes(status, bytes, n_bytes);
}

/* What was written, unless the user named it. */
static int say_output(const char *output, const reproduce_args *args) {
    if (!args->output) fprintf(stderr, "qkv: wrote %s\n", output);
    return QKV_OK;
}

/* ---- the command ---- */

/* Also of two models: the second is looked for by its hash, or given with --other. */
static int make_study(const qkv_reproduction *r, const reproduce_args *args,
                      const qkv_reproduction_info *info, const char *output, qkv_error *err) {
    const qkv_session_options how = cli_session_options(args->threads, args->memory);
    qkv_reproduction_difference difference = QKV_REPRODUCTION_DIFFERENCE_INIT;
    qkv_model *models[2] = {NULL, NULL};
    qkv_session *sessions[2] = {NULL, NULL};
    qkv_study *study = NULL;
    qkv_reproduction_info second = *info;
    second.model = info->other_model;
    second.model_hash = info->other_hash;
    if (args->results) return cli_usage(err, "--results is for charts of sweeps");
    if (args->other && !info->other_hash[0])
        return cli_usage(err, "--other is for studies of two models");
    int status = open_model(&models[0], args->model, info, "-m", err);
    if (status == QKV_OK && info->other_hash[0])
        status = open_model(&models[1], args->other, &second, "--other", err);
    for (int i = 0; i < 2 && status == QKV_OK && models[i]; i++)
        status = cli_session_new(&sessions[i], models[i], &how, err);
    if (status == QKV_OK)
        status =
            cli_name_fields(qkv_reproduction_study(r, &study, sessions[0], sessions[1], err), err);
    if (status == QKV_OK && output) status = write_study(study, info, output, err);
    if (status == QKV_OK && output) say_output(output, args);
    if (status == QKV_OK && args->check) {
        qkv_study_info made = QKV_STUDY_INFO_INIT;
        status = qkv_study_get_info(study, &made, err);
        if (status == QKV_OK) status = qkv_reproduction_compare(r, made.recipe, &difference, err);
        if (status == QKV_OK) status = report(&difference, info, err);
    }
    qkv_study_free(study);
    for (int i = 0; i < 2; i++) {
        qkv_session_free(sessions[i]);
        qkv_model_free(models[i]);
    }
    return status;
}

static void warn_results(const qkv_plot *plot, const qkv_reproduction_info *info) {
    qkv_plot_info made = QKV_PLOT_INFO_INIT;
    if (qkv_plot_get_info(plot, &made, NULL) != QKV_OK || strcmp(made.id, info->id) == 0) return;
    fprintf(stderr, "qkv: warning: other results than those of the chart\n");
}

static int make_plot(const qkv_reproduction *r, const reproduce_args *args,
                     const qkv_reproduction_info *info, const char *output, qkv_error *err) {
    qkv_reproduction_difference difference = QKV_REPRODUCTION_DIFFERENCE_INIT;
    qkv_sweep_reader *results = NULL;
    qkv_plot *plot = NULL;
    if (args->model || args->other)
        return cli_usage(err, "a chart needs no model: leave out -m and --other");
    if (!args->results) {
        return cli_usage(err,
                         "this is a chart of a sweep's results, called %s: give them with "
                         "--results",
                         info->results);
    }
    int status = qkv_sweep_reader_open(&results, args->results, err);
    if (status == QKV_OK)
        status = cli_name_fields(qkv_reproduction_plot(r, &plot, results, err), err);
    qkv_sweep_reader_close(results);
    if (status == QKV_OK) warn_results(plot, info);
    if (status == QKV_OK && output) {
        status = write_plot(plot, info, output, err);
        if (status == QKV_OK) say_output(output, args);
    }
    if (status == QKV_OK && args->check) {
        qkv_plot_info made = QKV_PLOT_INFO_INIT;
        status = qkv_plot_get_info(plot, &made, err);
        if (status == QKV_OK) status = qkv_reproduction_compare(r, made.recipe, &difference, err);
        if (status == QKV_OK) status = report(&difference, info, err);
    }
    qkv_plot_free(plot);
    return status;
}

static int run_reproduce(const cli_call *call, qkv_error *err) {
    const reproduce_args *args = call->args;
    qkv_reproduction_info info = QKV_REPRODUCTION_INFO_INIT;
    qkv_reproduction *r = NULL;
    char *output = NULL;
    int status = open_recipe(&r, call->operands[0], args, err);
    if (status == QKV_OK) status = qkv_reproduction_get_info(r, &info, err);
    if (status == QKV_OK) status = choose_output(&output, args, &info, err);
    if (status == QKV_OK) {
        status = (info.is_plot ? make_plot : make_study)(r, args, &info, output, err);
    }
    free(output);
    qkv_reproduction_free(r);
    return status;
}
