/* qkv figure rows: the weights of one query in every layer. */
#include "cli/cmd_figure.h"

static const figure_args defaults = {FIGURE_DEFAULTS};

static const cli_option options[] = {
    CLI_MODEL_OPTION(figure_args),
    CLI_PROMPTS_OPTIONS(figure_args),
    FIGURE_NUMBER("query", "N", CLI_INTEGER, query, INT32_MIN, INT32_MAX,
                  "position of the query; from the end when negative (default -1: the last)"),
    FIGURE_OPTION("layer", "L|auto", CLI_INDEX, layer,
                  "a row per head of this layer (default auto: a row per layer)"),
    FIGURE_LAYERS_OPTION,
    FIGURE_OPTION("head", "H|auto", CLI_INDEX, head,
                  "query head (default auto: the mean over heads; with --layer all)"),
    FIGURE_VARIANT_OPTION,
    FIGURE_LABEL_OPTIONS,
    FIGURE_BASELINE_OPTION,
    FIGURE_DRAWING_OPTIONS,
    FIGURE_OUTPUT_OPTIONS,
};

static int run_rows(const cli_call *call, qkv_error *err);

const cli_command cli_command_figure_rows = {
    .name = "figure rows",
    .summary = "draw where one query looks, layer by layer",
    .synopsis = "[-m MODEL] [-p TEXT]... [--query N] [--layer L | --layers LAYERS] [--head H] "
                "[--variant EDITS] -o OUT...",
    .description =
        "Draws the attention weights of one query: a row per layer, the mean over its heads or one "
        "head, and a column per key. With --layer, a row per head of that layer. Several prompts "
        "are drawn one below the other.\n"
        "\n"
        "  qkv figure rows -p 'The river runs to the sea.' -o rows.png\n"
        "  qkv figure rows --query 3 --layer 2 --variant 'k@1=zero' --baseline -o heads.png\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_rows,
};

static int run_rows(const cli_call *call, qkv_error *err) {
    return cli_figure(call, QKV_FIGURE_ROWS, err);
}
