/*
 * qkv show: what a file holds. What it is shows in its first bytes; each kind has its own way of being
 * told, and kinds that another command is for are sent there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/columns.h"
#include "cli/show.h"
#include "qkv/reproduce.h"

static const show_args defaults = {0};

static const cli_option options[] = {
    {0, "tensor", "NAME", "print the numbers of one tensor, with tokens on its axes", CLI_TEXT,
     offsetof(show_args, tensor), 0, 0, 0},
    CLI_JSON_OPTION(show_args),
};

static int run_show(const cli_call *call, qkv_error *err);

const cli_command cli_command_show = {
    .name = "show",
    .summary = "what a file of qkv's holds: tensors, metadata, results, recipe",
    .synopsis = "FILE [--tensor NAME] [--json]",
    .description =
        "Prints what is in a file that qkv wrote: the prompt, tokens, edits and tensors of a result "
        "(.safetensors, .npz, .json; .npy has nothing but its tensor), the model, metrics and "
        "progress of a sweep (SQLite), the recipe of a figure, report or chart, the keys of any other "
        "JSON. Other programs' safetensors and NumPy files are shown too. Of a GGUF file it says which command describes it.\n"
        "\n"
        "  qkv show out.safetensors\n"
        "  qkv show out.safetensors --tensor v1/pattern.5\n"
        "  qkv show results.sqlite --json\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .min_operands = 1,
    .max_operands = 1,
    .operand = CLI_PATH,
    .run = run_show,
};

/* ---- lines ---- */

enum { KEY_WIDTH = 18, MOST_CHARACTERS = 240 };

void show_line(const char *key, const char *text) {
    qkv_text shown = {0}, name = {0};
    qkv_text_append_short(&name, key, strlen(key), MOST_CHARACTERS);
    qkv_text_append_short(&shown, text, strlen(text), MOST_CHARACTERS);
    printf("%-*s  %s\n", KEY_WIDTH, cli_shown(&name), cli_shown(&shown));
    qkv_text_release(&shown);
    qkv_text_release(&name);
}

static void show_value(const char *key, const json_t *value) {
    if (json_is_string(value)) {
        show_line(key, json_string_value(value));
        return;
    }
    char *dump = qkv_json_dump(value, JSON_ENCODE_ANY);
    show_line(key, dump ? dump : "");
    free(dump);
}

void show_object(const json_t *object, const char *const *left_out) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        size_t i = 0;
        while (left_out[i] && strcmp(left_out[i], key) != 0) i++;
        if (!left_out[i]) show_value(key, value);
    }
}

/* ---- JSON of other kinds: tables, reports, recipes, specifications ---- */

enum { MOST_JSON = 64 << 20 };

static int show_json(const char *path, const show_args *args, qkv_error *err) {
    static const char *const none[] = {NULL};
    char *text = NULL;
    size_t size = 0;
    json_error_t problem;
    int status = qkv_read_file(&text, &size, path, MOST_JSON, err);
    if (status != QKV_OK) return status;
    json_t *json = qkv_json_parse(text, size, 0, &problem);
    free(text);
    if (!json) {
        return qkv_fail(err, QKV_ERR_FORMAT, "%s, line %d: %s", path, problem.line, problem.text);
    }
    if (json_is_object(json_object_get(json, "tensors"))) {
        status = show_tensors(path, args, err);
    } else if (args->tensor) {
        status = cli_usage(err, "--tensor: %s holds no tensors", path);
    } else if (args->json) {
        return cli_print_json(json, err);
    } else {
        printf("%s: JSON\n\n", path);
        show_object(json, none);
    }
    json_decref(json);
    return status;
}

/* ---- what it is ---- */

static int show_model(const char *path, const show_args *args, qkv_error *err) {
    (void)args;
    return cli_usage(err, "%s is a model; 'qkv info -m %s' describes it", path, path);
}

/* The recipe that a figure, report or chart carries. */
static int show_figure(const char *path, const show_args *args, qkv_error *err) {
    static const char *const none[] = {NULL};
    qkv_reproduction *r = NULL;
    qkv_reproduction_info info = QKV_REPRODUCTION_INFO_INIT;
    json_t *recipe = NULL;
    if (args->tensor) return cli_usage(err, "--tensor: %s holds no tensors", path);
    int status = qkv_reproduction_open(&r, path, err);
    if (status == QKV_OK) status = qkv_reproduction_get_info(r, &info, err);
    if (status == QKV_OK) {
        recipe = qkv_json_parse(info.recipe, strlen(info.recipe), 0, NULL);
        if (!recipe) status = qkv_fail_memory(err);
    }
    if (status == QKV_OK && args->json) {
        status = cli_print_json(json_incref(recipe), err);
    } else if (status == QKV_OK) {
        printf("%s: %s, id %s; 'qkv reproduce' makes it again\n\n", path, info.kind, info.id);
        show_object(recipe, none);
    }
    json_decref(recipe);
    qkv_reproduction_free(r);
    return status;
}

typedef int (*shower)(const char *path, const show_args *args, qkv_error *err);

static const struct {
    const char *bytes;
    size_t n;
    shower show;
} kinds[] = {
    {"SQLite format 3", 16, show_sweep},
    {"GGUF", 4, show_model},
    {"\x89PNG", 4, show_figure},
    {"%PDF", 4, show_figure},
    {"<?xml", 5, show_figure},
    {"<svg", 4, show_figure},
    {"<!doctype", 9, show_figure},
    {"<!DOCTYPE", 9, show_figure},
    {"{", 1, show_json},
    {"[", 1, show_json},
};

static int run_show(const cli_call *call, qkv_error *err) {
    const char *path = call->operands[0];
    char head[16] = "";
    if (qkv_is_directory(path))
        return cli_usage(err, "%s is a directory; 'qkv info -m' describes models", path);
    FILE *file = fopen(path, "rb");
    const size_t n = file ? fread(head, 1, sizeof head, file) : 0;
    if (file) fclose(file);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (n < kinds[i].n || memcmp(head, kinds[i].bytes, kinds[i].n) != 0) continue;
        if (kinds[i].show == show_json && !qkv_begins_as_text(head, n)) continue;
        return kinds[i].show(path, call->args, err);
    }
    if (strcmp(qkv_path_suffix(path), "md") == 0) return show_figure(path, call->args, err);
    const int status = show_tensors(path, call->args, err);
    if (status != QKV_ERR_FORMAT || memcmp(head, "PK", 2) == 0 || memcmp(head, "\x93NUMPY", 6) == 0)
        return status;
    /* What is nothing else would be safetensors: their header begins with a brace. */
    return n > 8 && head[8] == '{'
               ? status
               : qkv_fail(err, QKV_ERR_FORMAT,
                          "%s is none of safetensors, .npz, .npy, JSON, results of a sweep, or a "
                          "figure",
                          path);
}
