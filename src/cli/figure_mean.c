/* qkv figure mean: query, key and value replaced by their mean over heads, for several prompts. */
#include <stdlib.h>

#include "cli/figure.h"

static const figure_args defaults = {FIGURE_DEFAULTS};

static const cli_option options[] = {
    FIGURE_INPUT_OPTIONS,
    FIGURE_EDIT_HEADS_OPTION,
    FIGURE_DRAWING_OPTIONS,
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

static int set_cell(figure *fig, size_t row, size_t col, qkv_error *err) {
    char *edit = figure_edit(fig, figure_parts[col].site, "mean:head");
    char *title =
        figure_printf("Taking the Mean of *%s* (Input %zu)", figure_parts[col].name, row + 1);
    const int status = figure_set(fig, row, col, row, edit, title, err);
    figure_mark(fig, row, col, FIGURE_MEAN, (int)col, 0);
    if (row == 0 && edit) qkv_text_printf(&fig->operations, "%s%s", col ? ", " : "", edit);
    free(edit);
    free(title);
    return status;
}

static int set_row(figure *fig, size_t row, qkv_error *err) {
    char *title = figure_printf("Unmodified (Input %zu)", row + 1);
    if (!title) return qkv_fail_memory(err);
    int status = figure_set_baseline(fig, row, row, title, err);
    free(title);
    for (size_t col = 0; col < FIGURE_PARTS && status == QKV_OK; col++) {
        status = set_cell(fig, row, col, err);
    }
    return status;
}

static int run_mean(const cli_call *call, qkv_error *err) {
    figure fig = {0};
    int status = figure_open(&fig, call, figure_prompts, 3, err);
    if (status == QKV_OK) status = figure_reserve(&fig, fig.n_prompts, FIGURE_PARTS, err);
    fig.title = "The Mean Operation For Query, Key and Value";
    for (size_t row = 0; row < fig.rows && status == QKV_OK; row++) {
        status = set_row(&fig, row, err);
    }
    if (status == QKV_OK) status = figure_finish(&fig, err);
    figure_close(&fig);
    return status;
}
