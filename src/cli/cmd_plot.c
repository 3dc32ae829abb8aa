/* qkv plot: the results of a sweep as a heatmap, as lines against ε, or as a ranking of heads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/plot.h"

static const plot_args defaults = {
    .kind = PLOT_AUTO, .by = -1, .band = -1, .scale = -1, .axis = -1, .order = PLOT_ORDER_AUTO};

/* clang-format off: one option to a line or two */
#define PLOT_OPTION(name, value, kind, field, help)                                                \
    { 0, name, value, help, kind, offsetof(plot_args, field), 0, 0, 0 }

static const cli_option options[] = {
    PLOT_OPTION("kind", "heatmap|lines|ranking", CLI_CHOICE, kind,
                "what to draw (default lines where there are several \xce\xb5, else heatmap)"),
    PLOT_OPTION("metric", "NAME", CLI_TEXT, metric, "which metric (default: the only one)"),
    PLOT_OPTION("target", "NAMES", CLI_TEXT, targets,
                "what was edited, e.g. q or q,k; none: nothing (default: all that were)"),
    PLOT_OPTION("op", "NAME", CLI_TEXT, op, "how, e.g. scale (default: the only way)"),
    PLOT_OPTION("epsilon", "E", CLI_TEXT, epsilon,
                "how strongly, e.g. 1e-3; for lines a list (default: all)"),
    PLOT_OPTION("layers", "LIST", CLI_TEXT, layers, "layers, e.g. 3 or 0,2,5-7 (default all)"),
    PLOT_OPTION("heads", "LIST", CLI_TEXT, heads, "query heads, likewise"),
    {0, "change", NULL, "show the difference from the unedited value", CLI_FLAG,
     offsetof(plot_args, change), 1, 0, 0},
    PLOT_OPTION("by", "target|layer|head", CLI_CHOICE, by,
                "a line for each of these, the rest averaged (default target)"),
    PLOT_OPTION("band", "range|sd|none", CLI_CHOICE, band,
                "over the prompts: least to largest (default), or one standard deviation to both "
                "sides"),
    PLOT_OPTION("scale", "linear|log", CLI_CHOICE, scale, "of the values (default linear)"),
    PLOT_OPTION("axis", "log|linear", CLI_CHOICE, axis, "of \xce\xb5 (default log)"),
    PLOT_OPTION("range", "LO,HI", CLI_TEXT, range,
                "range of the values (default: as far as they reach)"),
    {0, "top", "N", "how many heads of a ranking (default 20)", CLI_INTEGER,
     offsetof(plot_args, top), 0, 1, 2000},
    PLOT_OPTION("order", "largest|smallest|magnitude", CLI_CHOICE, order,
                "what a ranking begins with (default largest; magnitude with --change)"),
    PLOT_OPTION("title", "TEXT", CLI_TEXT, title,
                "title below the chart; *text* is italic, '' is none"),
    {0, "dpi", "N", "resolution of a PNG (default 150)", CLI_REAL, offsetof(plot_args, dpi), 0, 10,
     2400},
    {'o', "output", "OUT", "file for the chart: .png, .svg or .pdf; may be repeated", CLI_PATHS,
     offsetof(plot_args, outputs), 0, 0, 0},
};
/* clang-format on */

static int run_plot(const cli_call *call, qkv_error *err);

const cli_command cli_command_plot = {
    .name = "plot",
    .summary = "the results of a sweep as a heatmap, as lines or as a ranking of heads",
    .synopsis = "RESULTS.sqlite [--kind heatmap|lines|ranking] [--metric NAME] [--target NAMES] "
                "[--op NAME] [--epsilon E] [--layers LIST] [--heads LIST] [--change] -o OUT...",
    .description =
        "Draws one metric of a sweep: over layers and heads as a heatmap (a panel for every "
        "target), against \xce\xb5 as lines with a band over the prompts (a line for every "
        "target, layer or head), or as the heads in order of it. Values are means over the "
        "prompts; of the cells of a line, first over its heads. What the file leaves open must be "
        "named: the message lists the choices.\n"
        "\n"
        "A sweep that is unfinished or still running is drawn as far as it goes, and the small "
        "print says how much is missing. The recipe is embedded in the file.\n"
        "\n"
        "  qkv plot results.sqlite --metric sink -o sink.pdf\n"
        "  qkv plot results.sqlite --metric sink --kind heatmap --epsilon 1e-3 --change -o map.svg\n"
        "  qkv plot results.sqlite --metric kl --kind ranking --target q --epsilon 0 --top 30 \\\n"
        "      -o heads.png\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_plot,
};

/* ---- checks ---- */

static int check_outputs(const plot_args *args, qkv_error *err) {
    int png = 0;
    if (args->outputs.n == 0) return cli_usage(err, "no output: add for example -o chart.png");
    const int status = cli_outputs_check_names(&args->outputs, "png|svg|pdf", err);
    for (size_t i = 0; i < args->outputs.n; i++) {
        png |= strcmp(qkv_path_suffix(args->outputs.items[i].value), "png") == 0;
    }
    if (status == QKV_OK && args->dpi > 0 && !png) {
        return cli_usage(err, "--dpi is the resolution of a PNG, and no output is one");
    }
    return status;
}

static int check_args(const plot_args *args, qkv_error *err) {
    double low, high;
    if (args->change && args->scale == QKV_SCALE_LOG) {
        return cli_usage(err, "--scale log cannot show differences, they may be negative");
    }
    int status = args->range ? cli_parse_range(args->range, &low, &high, err) : QKV_OK;
    if (status == QKV_OK && args->range && args->scale == QKV_SCALE_LOG && low <= 0) {
        return cli_usage(err, "--range of a log scale must begin above 0");
    }
    return status == QKV_OK ? check_outputs(args, err) : status;
}

/* An option that the kind of chart has no use for must not pass as if it had an effect. */
static int check_kind(const plot *p, qkv_error *err) {
    const plot_args *args = p->args;
    const struct {
        int given, kinds; /* bits of the kinds that know it */
        const char *name;
    } rules[] = {
        {args->by >= 0, 1 << PLOT_LINES, "by"},
        {args->axis >= 0, 1 << PLOT_LINES, "axis"},
        {args->band >= 0, 1 << PLOT_LINES | 1 << PLOT_RANKING, "band"},
        {args->scale >= 0, 1 << PLOT_LINES | 1 << PLOT_HEATMAP, "scale"},
        {args->top > 0, 1 << PLOT_RANKING, "top"},
        {args->order >= 0, 1 << PLOT_RANKING, "order"},
    };
    static const char *const names[] = {"a heatmap", "lines", "a ranking"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (!rules[i].given || rules[i].kinds & 1 << p->kind) continue;
        return cli_usage(err, "--%s has no meaning for %s", rules[i].name, names[p->kind]);
    }
    double low, high;
    if (p->kind == PLOT_HEATMAP && args->change && args->range &&
        cli_parse_range(args->range, &low, &high, err) == QKV_OK && low != -high) {
        return cli_usage(err, "--range of differences must be the same to both sides, e.g. -1,1");
    }
    return QKV_OK;
}

/* ---- the command ---- */

static void release(plot *p) {
    qkv_sweep_reader_close(p->file);
    free(p->rows);
    free(p->targets.at);
    free(p->layers.at);
    free(p->heads.at);
    free(p->epsilons);
    free(p->cells);
    free(p->groups);
}

static int run_plot(const cli_call *call, qkv_error *err) {
    plot p = {.call = call, .args = call->args};
    int status = check_args(p.args, err);
    if (status == QKV_OK) status = cli_outputs_check_writable(&p.args->outputs, err);
    if (status == QKV_OK) status = qkv_sweep_reader_open(&p.file, call->operands[0], err);
    if (status == QKV_OK) {
        p.info = qkv_sweep_reader_get_info(p.file);
        status = plot_select(&p, err);
    }
    if (status == QKV_OK) status = check_kind(&p, err);
    if (status == QKV_OK) status = plot_summarize(&p, err);
    if (status == QKV_OK) status = plot_draw(&p, err);
    if (status == QKV_OK && p.n_missing) {
        fprintf(stderr, "qkv: warning: the sweep is unfinished: %zu of %zu values are missing\n",
                p.n_missing, p.n_cells);
    }
    release(&p);
    return status;
}
