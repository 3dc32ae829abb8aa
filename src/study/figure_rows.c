/*
 * The figure rows: where one query looks, layer by layer. A panel has a row per layer (the mean over
 * its heads, or one head), or a row per head where one layer was given; its columns are the keys.
 * Every prompt is a row of panels.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "study/figure.h"

/* Points: room for a number in a cell while that is possible, and a page that still fits. */
static const double PITCH = 20, LEAST_SIDE = 170, MOST_SIDE = 480;

size_t qkv_figure_query(const qkv_figure *fig, size_t prompt) {
    const int64_t n = (int64_t)fig->prompts.items[prompt].n_tokens, query = fig->options.query;
    return (size_t)(query < 0 ? n + query : query);
}

double qkv_figure_rows_size(const qkv_figure *fig) {
    size_t longest = 0;
    for (size_t i = 0; i < fig->rows * fig->cols; i++) {
        const figure_cell *cell = &fig->cells[i];
        const size_t side = cell->n_rows > cell->n_cols ? cell->n_rows : cell->n_cols;
        if (side > longest) longest = side;
    }
    return fmin(fmax(PITCH * (double)longest, LEAST_SIDE), MOST_SIDE);
}

/* "Query 7: mill"; asterisks and backslashes of the token are plain text. */
static char *name_query(const qkv_figure *fig, size_t prompt) {
    const size_t query = qkv_figure_query(fig, prompt);
    qkv_text text = {0};
    qkv_text_printf(&text, "Query %zu: ", query);
    for (const char *at = fig->prompts.items[prompt].labels[query]; *at; at++) {
        if (*at == '*') qkv_text_puts(&text, "\\");
        qkv_text_append(&text, at, 1);
    }
    if (!text.failed) return qkv_figure_name_input(fig, text.data, prompt);
    qkv_text_release(&text);
    return NULL;
}

int qkv_figure_rows_titles(qkv_figure *fig, qkv_error *err) {
    for (size_t i = 0; i < fig->rows * fig->cols; i++) {
        figure_cell *cell = &fig->cells[i];
        char *name = name_query(fig, cell->prompt);
        free(cell->title);
        cell->title =
            name && fig->options.baseline
                ? qkv_figure_printf("%s, %s", name, cell->edits[0] ? "edited" : "unmodified")
                : qkv_strdup(name);
        free(name);
        if (!cell->title) return qkv_fail_memory(err);
    }
    return QKV_OK;
}

static int set_row(qkv_figure *fig, size_t prompt, qkv_error *err) {
    const figure_cell cell = {
        .prompt = prompt,
        .edits = qkv_strdup(fig->options.variant ? fig->options.variant : ""),
        .title = qkv_strdup(""),
        .layer = fig->layer,
        .head = fig->head,
    };
    const int status = qkv_figure_set(fig, prompt, 0, cell, err);
    if (status != QKV_OK) return status;
    return qkv_figure_set_baseline(fig, prompt, 0, prompt, qkv_strdup(""), err);
}

/* The numbers at the left of the panels. */
static int name_rows(qkv_figure *fig, qkv_error *err) {
    const figure_places *shown = &fig->shown;
    const int by_head = fig->options.layer != QKV_AUTO;
    const size_t n = by_head ? shown->n_heads : shown->n_layers;
    fig->row_names = qkv_calloc(n, sizeof *fig->row_names);
    if (!fig->row_names) return qkv_fail_memory(err);
    fig->n_row_names = n;
    for (size_t i = 0; i < n; i++) {
        fig->row_names[i] =
            qkv_figure_printf("%d", (int)(by_head ? shown->heads[i] : shown->layers[i]));
        if (!fig->row_names[i]) return qkv_fail_memory(err);
    }
    return QKV_OK;
}

int qkv_figure_rows_cells(qkv_figure *fig, qkv_error *err) {
    fig->title = fig->options.layer == QKV_AUTO ? "The Attention of One Query across Layers"
                                                : "The Attention of One Query across Heads";
    int status = qkv_figure_reserve(fig, fig->prompts.n, 1, 1, err);
    if (status == QKV_OK) status = name_rows(fig, err);
    if (fig->options.variant) qkv_text_puts(&fig->operations, fig->options.variant);
    for (size_t prompt = 0; prompt < fig->prompts.n && status == QKV_OK; prompt++) {
        status = set_row(fig, prompt, err);
    }
    return status;
}
