/* qkv figure modify: query, key and value scaled by a list of factors. */
#include "cli/cmd_figure.h"

static const figure_args defaults = {FIGURE_DEFAULTS};

static const cli_option options[] = {
    FIGURE_INPUT_OPTIONS(CLI_PROMPT_OPTIONS),
    FIGURE_OPTION("epsilon", "LIST", CLI_TEXT, eps,
                  "factors, one column each, e.g. 0.5,1e-3 or logspace:1e-4,1,5, also linspace: "
                  "(default 5e-1,1e-3,1e-10)"),
    FIGURE_EDIT_HEADS_OPTION,
    FIGURE_LABEL_OPTIONS,
    FIGURE_BASELINE_OPTION,
    FIGURE_DRAWING_OPTIONS,
    FIGURE_MASKED_OPTION,
    FIGURE_SINK_OPTION,
    FIGURE_REPORT_OPTION,
    FIGURE_OUTPUT_OPTIONS,
};

static int run_modify(const cli_call *call, qkv_error *err);

const cli_command cli_command_figure_modify = {
    .name = "figure modify",
    .summary = "draw a head's attention with query, key or value scaled",
    .synopsis = "[-m MODEL] [-p TEXT] [--layer L] [--head H] [--epsilon LIST] -o OUT...",
    .description =
        "Draws the attention weights of one head: rows Query, Key and Value, columns the factors "
        "that they are multiplied with, before RoPE, at all tokens.\n"
        "\n"
        "  qkv figure modify -p 'The river runs to the sea.' -o modify.png\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_modify,
};

static int run_modify(const cli_call *call, qkv_error *err) {
    return cli_figure(call, QKV_FIGURE_MODIFY, err);
}
