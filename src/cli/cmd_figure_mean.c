/* qkv figure mean: query, key and value replaced by their mean over heads, for several prompts. */
#include "cli/cmd_figure.h"

static const figure_args defaults = {FIGURE_DEFAULTS};

static const cli_option options[] = {
    FIGURE_INPUT_OPTIONS(CLI_PROMPTS_OPTIONS),
    FIGURE_EDIT_HEADS_OPTION,
    FIGURE_LABEL_OPTIONS,
    FIGURE_BASELINE_OPTION,
    FIGURE_DRAWING_OPTIONS,
    FIGURE_MASKED_OPTION,
    FIGURE_SINK_OPTION,
    FIGURE_REPORT_OPTION,
    FIGURE_OUTPUT_OPTIONS,
};

static int run_mean(const cli_call *call, qkv_error *err);

const cli_command cli_command_figure_mean = {
    .name = "figure mean",
    .summary = "draw a head's attention with the mean over heads in its place",
    .synopsis = "[-m MODEL] [-p TEXT]... [--layer L] [--head H] -o OUT...",
    .description =
        "Draws the attention weights of one head when its query, key or value is replaced by the "
        "mean over all heads of the layer: columns Query, Key and Value, one row for every "
        "prompt.\n"
        "\n"
        "  qkv figure mean -p 'The river runs to the sea.' -p 'A good idea.' -o mean.png\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_mean,
};

static int run_mean(const cli_call *call, qkv_error *err) {
    return cli_figure(call, QKV_FIGURE_MEAN, err);
}
