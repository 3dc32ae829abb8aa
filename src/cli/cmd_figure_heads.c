/* qkv figure heads: a small map of every head. */
#include "cli/cmd_figure.h"

static const figure_args defaults = {FIGURE_DEFAULTS};

static const cli_option options[] = {
    CLI_MODEL_OPTION(figure_args),
    CLI_PROMPT_OPTIONS(figure_args),
    FIGURE_OPTION("layer", "L|auto", CLI_INDEX, layer, "one layer (default auto: all)"),
    FIGURE_LAYERS_OPTION,
    FIGURE_VARIANT_OPTION,
    FIGURE_DRAWING_OPTIONS,
    FIGURE_MASKED_OPTION,
    FIGURE_OUTPUT_OPTIONS,
};

static int run_heads(const cli_call *call, qkv_error *err);

const cli_command cli_command_figure_heads = {
    .name = "figure heads",
    .summary = "draw the attention of all heads as small maps",
    .synopsis = "[-m MODEL] [-p TEXT] [--layer L | --layers LAYERS] [--variant EDITS [--diff]] -o "
                "OUT...",
    .description =
        "Draws a small map of every head: layers down, heads across; or all heads of one layer. "
        "Maps of long prompts are pooled: each cell is the largest weight of its block, or with "
        "--diff the largest change. The size of the maps is chosen by their number.\n"
        "\n"
        "  qkv figure heads -p 'The river runs to the sea.' -o heads.png\n"
        "  qkv figure heads --layers 2-4 --variant 'v@1=zero' --diff -o change.png\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_heads,
};

static int run_heads(const cli_call *call, qkv_error *err) {
    return cli_figure(call, QKV_FIGURE_HEADS, err);
}
