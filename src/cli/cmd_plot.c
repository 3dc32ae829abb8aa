/* qkv plot: the results of a sweep as a heatmap, as lines against ε, or as a ranking of heads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/inputs.h"
#include "cli/messages.h"
#include "qkv/plot.h"

typedef struct plot_args {
    const char *model; /* of pages; NULL: none */
    int kind, by, band, scale, axis, order,
        colormap; /* places in the lists of words; -1: not given */
    const char *metric, *targets, *op, *epsilon, *layers, *heads;
    int change, no_recipe;
    int64_t top; /* 0: not given */
    const char *range, *title;
    double dpi; /* 0: not given */
    cli_print print;
    cli_list outputs;
    const char *format; /* of -o - */
} plot_args;

#define PLOT_FORMATS "png|svg|pdf|html"

static const plot_args defaults = {.kind = -1,
                                   .by = -1,
                                   .band = -1,
                                   .scale = -1,
                                   .axis = -1,
                                   .order = -1,
                                   .colormap = -1,
                                   .print = CLI_PRINT_DEFAULTS};

/* clang-format off: one option to a line or two */
#define PLOT_OPTION(name, value, kind, field, help)                                                \
    { 0, name, value, help, kind, offsetof(plot_args, field), 0, 0, 0 }

static const cli_option options[] = {
    PLOT_OPTION("kind", "heatmap|lines|ranking", CLI_CHOICE, kind,
                "what to draw (default lines where there are several \xce\xb5, else heatmap)"),
    PLOT_OPTION("metric", "NAME", CLI_TEXT, metric, "which metric (default: the only one)"),
    PLOT_OPTION("target", "NAMES", CLI_TEXT, targets,
                "edited sites, e.g. q or q,k; none is the unedited model (default: all edited)"),
    PLOT_OPTION("op", "NAME", CLI_TEXT, op, "operation, e.g. scale (default: the only one)"),
    PLOT_OPTION("epsilon", "LIST", CLI_TEXT, epsilon,
                "value of \xce\xb5, e.g. 1e-3; for lines a list, e.g. 0.1,0.5 or "
                "logspace:1e-4,1,5, also linspace: (default: all)"),
    PLOT_OPTION("layers", "LIST", CLI_TEXT, layers, "layers, e.g. 3, 0,2,5-7 or -1 (default all)"),
    PLOT_OPTION("heads", "LIST", CLI_TEXT, heads, "query heads, in the same notation"),
    {0, "change", NULL, "show the difference from the unedited value", CLI_FLAG,
     offsetof(plot_args, change), 1, 0, 0},
    PLOT_OPTION("by", "target|layer|head", CLI_CHOICE, by,
                "a line for each of these, the rest averaged (default target)"),
    PLOT_OPTION("band", "range|sd|none", CLI_CHOICE, band,
                "band over the prompts: smallest to largest value (default), or one standard "
                "deviation to both sides"),
    PLOT_OPTION("scale", "linear|log", CLI_CHOICE, scale, "scale of the values (default linear)"),
    PLOT_OPTION("axis", "log|linear", CLI_CHOICE, axis,
                "axis of \xce\xb5 (default log, on which 0 stands apart)"),
    PLOT_OPTION("range", "LO,HI|auto", CLI_TEXT, range,
                "range of the values (default auto: from the data)"),
    PLOT_OPTION("colormap", "coolwarm|viridis|cividis|magma|grey", CLI_CHOICE, colormap,
                "colours of a heatmap (default viridis; coolwarm, around 0, for changes and for "
                "values of two signs)"),
    {0, "top", "N", "how many heads of a ranking (default 20)", CLI_INTEGER,
     offsetof(plot_args, top), 0, 1, 2000},
    PLOT_OPTION("order", "largest|smallest|magnitude", CLI_CHOICE, order,
                "which heads come first in a ranking (default largest; magnitude with --change)"),
    PLOT_OPTION("title", "TEXT", CLI_TEXT, title,
                "title below the chart; *text* is italic, '' is none"),
    {0, "dpi", "N", "resolution of a PNG (default 150, with --width 300)", CLI_REAL,
     offsetof(plot_args, dpi), 0, 10, 2400},
    CLI_PRINT_OPTIONS(plot_args),
    {'m', "model", "MODEL",
     "the sweep's model, for a page: cells then open the attention of their head", CLI_MODEL,
     offsetof(plot_args, model), 0, 0, 0},
    {0, "no-recipe", NULL, "leave out of the file how it was made", CLI_FLAG,
     offsetof(plot_args, no_recipe), 1, 0, 0},
    CLI_OUTPUT_OPTIONS(plot_args,
                       "file for the chart: .png, .svg or .pdf; .html is a page whose cells open",
                       PLOT_FORMATS),
};
/* clang-format on */

static int run_plot(const cli_call *call, qkv_error *err);

const cli_command cli_command_plot = {
    .name = "plot",
    .summary = "the results of a sweep as a heatmap, as lines or as a ranking of heads",
    .synopsis = "RESULTS.sqlite [--kind heatmap|lines|ranking] [--metric NAME] [--target NAMES] "
                "[--op NAME] [--epsilon LIST] [--layers LIST] [--heads LIST] [--change] -o OUT...",
    .description =
        "Draws one metric of a sweep: over layers and heads as a heatmap (a panel for every "
        "target), against \xce\xb5 as lines with a band over the prompts (a line for every "
        "target, layer or head), or as a ranking of heads. Values are means over the prompts; "
        "in a line, the mean over its heads is taken first. Where the file holds several "
        "metrics, operations or \xce\xb5, choose with options; the error message lists the "
        "choices.\n"
        "\n"
        "An unfinished or running sweep is drawn as far as it goes, and the small print says "
        "how much is missing. The recipe is embedded in the file.\n"
        "\n"
        "As .html it is a page that needs nothing else: all metrics at every \xce\xb5 are inside, and "
        "cells open. With -m they open the attention of their head for the first prompts, with a "
        "slider for \xce\xb5.\n"
        "\n"
        "  qkv plot results.sqlite --metric sink -o sink.pdf\n"
        "  qkv plot results.sqlite --metric sink --kind heatmap --epsilon 1e-3 --change -o map.svg\n"
        "  qkv plot results.sqlite --metric kl --kind ranking --target q --epsilon 0 --top 30 \\\n"
        "      -o heads.png\n"
        "  qkv plot results.sqlite --metric tv --kind heatmap --epsilon 0.01 -m MODEL -o map.html\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .min_operands = 1,
    .max_operands = 1,
    .operand = CLI_PATH,
    .run = run_plot,
};

/* ---- output files ---- */

static int check_outputs(const plot_args *args, qkv_error *err) {
    if (args->outputs.n == 0) return cli_usage(err, "no output: add for example -o chart.png");
    int status = cli_outputs_check(&args->outputs, PLOT_FORMATS, args->format, NULL, err);
    if (status == QKV_OK) status = cli_print_check(&args->print, &args->outputs, args->format, err);
    if (status == QKV_OK && args->dpi > 0 &&
        !cli_outputs_have(&args->outputs, args->format, "png")) {
        return cli_usage(err, "--dpi is the resolution of a PNG, and no output is a PNG");
    }
    if (status == QKV_OK && args->model &&
        !cli_outputs_have(&args->outputs, args->format, "html")) {
        return cli_usage(err, "--model is for pages (.html), and no output is a page");
    }
    return status;
}

/* ---- options of the library ---- */

/* Words begin with 0, the library's constants with the default. */
static int read_args(qkv_plot_options *wanted, const plot_args *args, qkv_error *err) {
    static const qkv_plot_scale axes[] = {QKV_PLOT_SCALE_AUTO, QKV_PLOT_SCALE_LOG,
                                          QKV_PLOT_SCALE_LINEAR};
    wanted->kind = (qkv_plot_kind)(args->kind + 1);
    wanted->by = (qkv_plot_by)(args->by + 1);
    wanted->band = (qkv_plot_band)(args->band + 1);
    wanted->scale = (qkv_plot_scale)(args->scale + 1);
    wanted->axis = axes[args->axis + 1];
    wanted->order = (qkv_plot_order)(args->order + 1);
    wanted->metric = args->metric;
    wanted->target = args->targets;
    wanted->op = args->op;
    wanted->epsilon = args->epsilon;
    wanted->layers = args->layers;
    wanted->heads = args->heads;
    wanted->change = args->change;
    wanted->top = (int32_t)args->top;
    wanted->title = args->title;
    wanted->dpi = args->dpi;
    wanted->no_recipe = args->no_recipe;
    wanted->colormap = (qkv_colormap)(args->colormap + 1);
    wanted->text = (qkv_text_form)(args->print.text + 1);
    wanted->font = args->print.font;
    wanted->width = args->print.width;
    wanted->hide_notes = args->print.no_notes;
    wanted->font_size = args->print.font_size;
    wanted->page = cli_outputs_have(&args->outputs, args->format, "html");
    if (!args->range || strcmp(args->range, "auto") == 0) return QKV_OK;
    return cli_parse_range(args->range, &wanted->range[0], &wanted->range[1], err);
}

/* A choice that must be made or mended is a usage error. */
static int name_options(int status, qkv_error *err) {
    cli_name_fields(status, err);
    const int is_usage = status == QKV_ERR_ARGUMENT || status == QKV_ERR_SYNTAX;
    return is_usage ? err->status = CLI_USAGE : status;
}

/* ---- the command ---- */

static int print_plot(const qkv_plot *plot, const char *format, qkv_error *err) {
    char *bytes = NULL;
    size_t n_bytes = 0;
    const int status = qkv_plot_render(plot, format, &bytes, &n_bytes, err);
    return cli_print_bytes(status, bytes, n_bytes);
}

static int draw(const qkv_plot *plot, const cli_list *outputs, const char *format, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < outputs->n && status == QKV_OK; i++) {
        const char *path = outputs->items[i].value;
        status =
            cli_is_stdout(path) ? print_plot(plot, format, err) : qkv_plot_write(plot, path, err);
    }
    const char *warning;
    for (size_t i = 0; status == QKV_OK && (warning = qkv_plot_warning(plot, i)); i++) {
        cli_warn("%s", warning);
    }
    return status;
}

/* A session on the sweep's model, where one is named. */
static int open_model(const plot_args *args, qkv_model **model, qkv_session **session,
                      qkv_error *err) {
    const qkv_session_options how = cli_session_options(0, 0);
    if (!args->model) return QKV_OK;
    const int status = cli_model_open(model, args->model, err);
    return status == QKV_OK ? cli_session_new(session, *model, &how, err) : status;
}

static int make_and_draw(const cli_call *call, qkv_plot_options *wanted, qkv_error *err) {
    const plot_args *args = call->args;
    qkv_sweep_reader *file = NULL;
    qkv_plot *plot = NULL;
    qkv_model *model = NULL;
    int status = qkv_sweep_reader_open(&file, call->operands[0], err);
    if (status == QKV_OK) status = open_model(args, &model, &wanted->session, err);
    if (status == QKV_OK) status = name_options(qkv_plot_new(&plot, file, wanted, err), err);
    qkv_sweep_reader_close(file);
    cli_session_free(wanted->session);
    qkv_model_free(model);
    if (status == QKV_OK) status = name_options(draw(plot, &args->outputs, args->format, err), err);
    qkv_plot_free(plot);
    return status;
}

static int run_plot(const cli_call *call, qkv_error *err) {
    const plot_args *args = call->args;
    qkv_plot_options wanted = QKV_PLOT_OPTIONS_INIT;
    char **command = NULL;
    int status = read_args(&wanted, args, err);
    if (status == QKV_OK) status = name_options(qkv_plot_options_check(&wanted, err), err);
    if (status == QKV_OK) status = check_outputs(args, err);
    if (status == QKV_OK) status = cli_outputs_check_writable(&args->outputs, err);
    if (status == QKV_OK) status = cli_command_words(call, &command, err);
    wanted.command = (const char *const *)command;
    wanted.n_command = command ? (size_t)call->argc : 0;
    if (status == QKV_OK) status = make_and_draw(call, &wanted, err);
    cli_command_words_free(command);
    return status;
}
