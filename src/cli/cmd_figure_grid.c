/* qkv figure grid: rows and columns of edits of one's own, for one prompt or several. */
#include <string.h>

#include "cli/cmd_figure.h"

static const figure_args defaults = {FIGURE_DEFAULTS};

static const cli_option options[] = {
    FIGURE_INPUT_OPTIONS(CLI_PROMPTS_OPTIONS),
    FIGURE_OPTION("row", "LABEL=EDITS", CLI_LIST, rows,
                  "a row: its label, and the edits of all its panels"),
    FIGURE_OPTION("col", "LABEL=EDITS", CLI_LIST, cols,
                  "a column: its label, and the edits of all its panels"),
    CLI_SOURCE_OPTIONS(figure_args),
    FIGURE_OPTION("show", "pattern|scores", CLI_CHOICE, show, "what is drawn (default pattern)"),
    FIGURE_LABEL_OPTIONS,
    FIGURE_BASELINE_OPTION,
    FIGURE_DRAWING_OPTIONS,
    FIGURE_MASKED_OPTION,
    FIGURE_SINK_OPTION,
    FIGURE_REPORT_OPTION,
    FIGURE_OUTPUT_OPTIONS,
};

static int run_grid(const cli_call *call, qkv_error *err);

const cli_command cli_command_figure_grid = {
    .name = "figure grid",
    .summary = "draw a head's attention under edits of your own",
    .synopsis = "[-m MODEL] [-p TEXT]... [--layer L] [--head H] [--row LABEL=EDITS]... [--col "
                "LABEL=EDITS]... -o OUT...",
    .description =
        "Draws one panel for every row and column, with the edits of both. EDITS may be empty. "
        "In EDITS {layer} and {head} stand for the layer and head that are shown. How edits are "
        "written: 'qkv help notation'.\n"
        "\n"
        "Several prompts stand side by side, each with all rows and columns; with --col alone, each "
        "is a row. Without --row and --col, prompts are compared as they are.\n"
        "\n"
        "  qkv figure grid -p 'The old mill.' -p 'The new mill by the river.' -o both.png\n"
        "  qkv figure grid --row 'First token=q@{layer}.h{head}[0]=zero' --row 'All=' \\\n"
        "      --col 'Plain=' --col 'Half keys=k@{layer}.h{head}=scale:0.5' -o grid.svg\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_grid,
};

static int check_sides(const cli_list *list, const char *option, qkv_error *err) {
    for (size_t i = 0; i < list->n; i++) {
        const char *given = list->items[i].value, *equals = strchr(given, '=');
        if (!equals) return cli_usage(err, "%s wants LABEL=EDITS, not '%s'", option, given);
        /* SITE@LAYERS=OP: the label was forgotten, and what it is taken for makes no sense. */
        if (memchr(given, '@', (size_t)(equals - given)) && equals[1] && !strchr(equals, '@')) {
            return cli_usage(err, "%s wants LABEL=EDITS, and '%s' has no label; write 'Name=%s'",
                             option, given, given);
        }
    }
    return QKV_OK;
}

static int check_args(const figure_args *args, qkv_error *err) {
    const int status = check_sides(&args->rows, "--row", err);
    return status == QKV_OK ? check_sides(&args->cols, "--col", err) : status;
}

static int run_grid(const cli_call *call, qkv_error *err) {
    const int status = check_args(call->args, err);
    return status == QKV_OK ? cli_figure(call, QKV_FIGURE_GRID, err) : status;
}
