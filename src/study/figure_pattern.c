/*
 * The figure pattern: the map of one head, or of several heads of a layer as small multiples. Several
 * prompts stand one below the other, each with all heads. With edits the maps are the edited ones; with
 * a baseline every head has a row, the unmodified map first.
 */
#include <math.h>

#include "base/memory.h"
#include "study/figure.h"

/* Heads stand beside each other up to here; more are broken into lines. */
enum { MOST_ACROSS = 4 };

/* Points: a single map is as large as a page allows where its cells have use for it. */
static const double PITCH = 20, LEAST_SIDE = 170, MOST_SINGLE = 340;

double qkv_figure_pattern_size(const qkv_figure *fig) {
    const double cells = fig->rows * fig->cols == 1 ? (double)fig->cells[0].n_rows : 0;
    return fmin(fmax(PITCH * cells, LEAST_SIDE), MOST_SINGLE);
}

static size_t count_heads(const qkv_figure *fig) {
    return qkv_figure_is_watched(fig) ? fig->shown.n_heads : 1;
}

static int32_t head_at(const qkv_figure *fig, size_t index) {
    return qkv_figure_is_watched(fig) ? fig->shown.heads[index] : fig->head;
}

static char *title_of(const qkv_figure *fig, size_t prompt, int32_t head, const char *state) {
    return qkv_figure_name_input(
        fig, qkv_figure_printf("Layer %d, Head %d%s", (int)fig->layer, (int)head, state), prompt);
}

static int set_cell(qkv_figure *fig, size_t row, size_t col, size_t prompt, int32_t head,
                    qkv_error *err) {
    const char *edits = fig->options.variant ? fig->options.variant : "";
    const char *state = fig->options.baseline ? ", edited" : "";
    const figure_cell cell = {
        .prompt = prompt,
        .edits = qkv_strdup(edits),
        .title = title_of(fig, prompt, head, state),
        .layer = fig->layer,
        .head = head,
    };
    int status = qkv_figure_set(fig, row, col, cell, err);
    if (status != QKV_OK || !fig->options.baseline) return status;
    char *title = title_of(fig, prompt, head, ", unmodified");
    status = qkv_figure_set_baseline(fig, row, 0, prompt, title, err);
    fig->cells[row * fig->cols].head = head;
    return status;
}

int qkv_figure_pattern_cells(qkv_figure *fig, qkv_error *err) {
    const size_t n_heads = count_heads(fig), n = fig->prompts.n * n_heads;
    size_t across = fig->options.baseline ? 1 : n_heads;
    if (fig->prompts.n == 1 && across > MOST_ACROSS) across = qkv_figure_heads_across(n_heads);
    int status = qkv_figure_reserve(fig, n / across, 1, across, err);
    if (fig->options.variant) qkv_text_puts(&fig->operations, fig->options.variant);
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        status = set_cell(fig, i / across, i % across, i / n_heads, head_at(fig, i % n_heads), err);
    }
    return status;
}
