/* The figure mean: query, key and value replaced by their mean over heads, one prompt to a row. */
#include "study/figure.h"

static int set_cell(qkv_figure *fig, size_t row, size_t col, qkv_error *err) {
    const figure_part *part = &qkv_figure_parts[col];
    const figure_cell cell = {
        .prompt = row,
        .edits = qkv_figure_edit(fig, part->site, "mean:head"),
        .title = qkv_figure_printf("Taking the Mean of *%s* (Input %zu)", part->name, row + 1),
        .change = FIGURE_MEANED,
        .part = (int)col,
    };
    if (row == 0 && cell.edits) {
        qkv_text_printf(&fig->operations, "%s%s", col ? ", " : "", cell.edits);
    }
    return qkv_figure_set(fig, row, col, cell, err);
}

static int set_row(qkv_figure *fig, size_t row, qkv_error *err) {
    char *title = qkv_figure_printf("Unmodified (Input %zu)", row + 1);
    int status = qkv_figure_set_baseline(fig, row, 0, row, title, err);
    for (size_t col = 0; col < FIGURE_PARTS && status == QKV_OK; col++) {
        status = set_cell(fig, row, col, err);
    }
    return status;
}

int qkv_figure_mean_cells(qkv_figure *fig, qkv_error *err) {
    fig->title = "The Mean Operation For Query, Key and Value";
    int status = qkv_figure_reserve(fig, fig->prompts.n, 1, FIGURE_PARTS, err);
    for (size_t row = 0; row < fig->rows && status == QKV_OK; row++) {
        status = set_row(fig, row, err);
    }
    return status;
}
