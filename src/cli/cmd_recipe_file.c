/* qkv recipe extract, insert, copy: the recipes that files carry, taken out and put back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/inputs.h"
#include "qkv/bytes.h"
#include "qkv/reproduce.h"

typedef struct recipe_file_args {
    const char *output;
} recipe_file_args;

static const recipe_file_args defaults = {0};

static const cli_option extract_options[] = {
    {'o', "output", "OUT",
     "file to write, or a folder, in which it is called ID.json (default: standard output)",
     CLI_PATH, offsetof(recipe_file_args, output), 0, 0, 0},
};
static const cli_option insert_options[] = {
    {'o', "output", "OUT", "file to write (default: the figure itself is replaced)", CLI_PATH,
     offsetof(recipe_file_args, output), 0, 0, 0},
};

static int run_extract(const cli_call *call, qkv_error *err);
static int run_insert(const cli_call *call, qkv_error *err);

const cli_command cli_command_recipe_extract = {
    .name = "recipe extract",
    .summary = "the recipe that a figure, report or chart carries",
    .synopsis = "FILE [-o OUT]",
    .description =
        "Prints the recipe in a PNG, SVG, PDF, HTML, Markdown, JSON or safetensors file, as JSON. "
        "Into a folder it is written as ID.json, where 'qkv reproduce ID --recipes FOLDER' finds "
        "it.\n"
        "\n"
        "  qkv recipe extract figure.png\n"
        "  qkv recipe extract figure.png -o recipes/\n",
    CLI_OPTIONS(extract_options),
    CLI_ARGS(defaults),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_extract,
};

const cli_command cli_command_recipe_insert = {
    .name = "recipe insert",
    .summary = "put a recipe into a figure that lost its own",
    .synopsis = "RECIPE.json FIGURE [-o OUT]",
    .description =
        "Puts a recipe into a PNG, SVG, PDF, HTML or Markdown file, in place of any that it has: "
        "programs that shrink or convert images drop such texts. Pixels and drawings stay as they "
        "are.\n"
        "\n"
        "  qkv recipe insert recipe.json shrunk.png\n",
    CLI_OPTIONS(insert_options),
    CLI_ARGS(defaults),
    .min_operands = 2,
    .max_operands = 2,
    .run = run_insert,
};

const cli_command cli_command_recipe_copy = {
    .name = "recipe copy",
    .summary = "put the recipe of one file into another",
    .synopsis = "FROM TO [-o OUT]",
    .description = "As recipe insert, with the recipe that another file carries.\n"
                   "\n"
                   "  qkv recipe copy figure.png shrunk.png\n",
    CLI_OPTIONS(insert_options),
    CLI_ARGS(defaults),
    .min_operands = 2,
    .max_operands = 2,
    .run = run_insert,
};

static int open_file(qkv_reproduction **r, const char *path, qkv_reproduction_info *info,
                     qkv_error *err) {
    const int status = qkv_reproduction_open(r, path, err);
    return status == QKV_OK ? qkv_reproduction_get_info(*r, info, err) : status;
}

static int write_recipe(const qkv_reproduction_info *info, const char *output, qkv_error *err) {
    qkv_text path = {0}, text = {0};
    qkv_text_puts(&path, output);
    if (qkv_is_directory(output)) qkv_text_printf(&path, "/%s.json", info->id);
    qkv_text_printf(&text, "%s\n", info->recipe);
    const int status = path.failed || text.failed
                           ? qkv_fail_memory(err)
                           : qkv_output_write(path.data, text.data, text.length, err);
    qkv_text_release(&path);
    qkv_text_release(&text);
    return status;
}

static int run_extract(const cli_call *call, qkv_error *err) {
    const recipe_file_args *args = call->args;
    qkv_reproduction_info info = QKV_REPRODUCTION_INFO_INIT;
    qkv_reproduction *r = NULL;
    int status = open_file(&r, call->operands[0], &info, err);
    if (status == QKV_OK && args->output && !cli_is_stdout(args->output)) {
        status = write_recipe(&info, args->output, err);
    } else if (status == QKV_OK) {
        puts(info.recipe);
    }
    qkv_reproduction_free(r);
    return status;
}

/* A recipe by itself is a file that carries one, too. */
static int run_insert(const cli_call *call, qkv_error *err) {
    const recipe_file_args *args = call->args;
    const char *to = call->operands[1];
    qkv_reproduction_info info = QKV_REPRODUCTION_INFO_INIT;
    qkv_reproduction *r = NULL;
    qkv_mapping map = {0};
    char *bytes = NULL;
    size_t n_bytes = 0;
    int status = open_file(&r, call->operands[0], &info, err);
    if (status == QKV_OK) status = qkv_mapping_open(&map, to, err);
    if (status == QKV_OK) {
        status = qkv_reproduction_insert(&bytes, &n_bytes, (const char *)map.data, map.size, to,
                                         info.recipe, err);
        qkv_mapping_close(&map);
    }
    const int printed = args->output && cli_is_stdout(args->output);
    if (status == QKV_OK && printed) status = cli_stdout_check(qkv_path_suffix(to), err);
    if (status == QKV_OK && printed) {
        status = cli_print_bytes(status, bytes, n_bytes);
        bytes = NULL;
    } else if (status == QKV_OK) {
        status = qkv_output_write(args->output ? args->output : to, bytes, n_bytes, err);
    }
    qkv_bytes_free(bytes);
    qkv_reproduction_free(r);
    return status;
}
