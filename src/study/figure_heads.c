/*
 * The figure heads: a small map of every head. Several layers stand one below the other, with the
 * heads across and both numbered at the edges; the heads of a single layer are broken into lines.
 */
#include <math.h>

#include "base/memory.h"
#include "study/figure.h"

/* Points: a page of all heads is about as wide as a sheet of paper, and no map too small to read. */
static const double PAGE_WIDTH = 1000, LEAST_SIZE = 34, MOST_SIZE = 110;
static const double LEAST_NAMED = 50;    /* narrower maps have numbers alone above them */
static const double CELLS_PER_POINT = 2; /* at the default 150 dpi, a pixel or more for each */

double qkv_figure_heads_size(const qkv_figure *fig) {
    if (fig->options.panel_size > 0) return fig->options.panel_size;
    return fmin(fmax(floor(PAGE_WIDTH / (double)fig->cols), LEAST_SIZE), MOST_SIZE);
}

size_t qkv_figure_heads_side(const qkv_figure *fig, size_t n) {
    if (fig->kind == QKV_FIGURE_PATTERN) return n;
    const size_t most = (size_t)(CELLS_PER_POINT * qkv_figure_heads_size(fig));
    return n < most ? n : most;
}

/* How many heads of a single layer stand beside each other, so that every line is full and there
 * are no more lines than heads in one. */
size_t qkv_figure_heads_across(size_t n_heads) {
    size_t across = 1;
    while (across * across < n_heads || n_heads % across != 0) across++;
    return across;
}

static int set_cell(qkv_figure *fig, size_t row, size_t col, size_t layer_index, size_t head_index,
                    qkv_error *err) {
    const int is_single = fig->shown.n_layers == 1;
    const int32_t layer = fig->shown.layers[layer_index], head = fig->shown.heads[head_index];
    const char *edits = fig->options.variant ? fig->options.variant : "";
    figure_cell cell = {
        .edits = qkv_strdup(edits),
        .title = qkv_figure_printf("Layer %d, Head %d", (int)layer, (int)head),
        .layer = layer,
        .head = head,
    };
    const int is_narrow = qkv_figure_heads_size(fig) < LEAST_NAMED && col > 0;
    if (is_single || row == 0) {
        cell.above = qkv_figure_printf(is_narrow ? "%d" : "Head %d", (int)head);
    }
    if (!is_single && col == 0) cell.side = qkv_figure_printf("Layer %d", (int)layer);
    const int has_names =
        (cell.above || !(is_single || row == 0)) && (cell.side || is_single || col);
    const int status = qkv_figure_set(fig, row, col, cell, err); /* takes the cell over */
    return status == QKV_OK && !has_names ? qkv_fail_memory(err) : status;
}

int qkv_figure_heads_cells(qkv_figure *fig, qkv_error *err) {
    const figure_places *shown = &fig->shown;
    const size_t n_heads = shown->n_heads;
    const int is_single = shown->n_layers == 1;
    const size_t cols = is_single ? qkv_figure_heads_across(n_heads) : n_heads;
    const size_t rows = is_single ? (n_heads + cols - 1) / cols : shown->n_layers;
    fig->title = is_single ? "The Attention of All Heads of a Layer" : "The Attention of All Heads";
    int status = qkv_figure_reserve(fig, rows, 1, cols, err);
    if (fig->options.variant) qkv_text_puts(&fig->operations, fig->options.variant);
    for (size_t i = 0; i < shown->n_layers * n_heads && status == QKV_OK; i++) {
        const size_t layer = i / n_heads, head = i % n_heads;
        status = is_single ? set_cell(fig, head / cols, head % cols, 0, head, err)
                           : set_cell(fig, layer, head, layer, head, err);
    }
    return status;
}
