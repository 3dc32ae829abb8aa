/*
 * The figure grid: any arrangement. The variant of a cell is its row's edits and its column's,
 * joined; a side without edits adds nothing. Several prompts stand side by side, each a block of
 * columns with all rows; where there are no rows, each is a row with all columns.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sized.h"
#include "study/figure.h"

/* One row or column, the placeholders filled in. */
typedef struct side {
    char *label;
    char *edits;
} side;

typedef struct side_list {
    side *items;
    size_t n;
} side_list;

static void release(side_list *list) {
    for (size_t i = 0; list->items && i < list->n; i++) {
        free(list->items[i].label);
        free(list->items[i].edits);
    }
    free(list->items);
}

static char *fill_placeholders(const qkv_figure *fig, const char *edits) {
    qkv_text text = {0};
    qkv_text_puts(&text, "");
    while (*edits) {
        if (strncmp(edits, "{layer}", 7) == 0) {
            qkv_text_printf(&text, "%d", (int)fig->layer);
            edits += 7;
        } else if (strncmp(edits, "{head}", 6) == 0) {
            qkv_text_printf(&text, "%d", (int)fig->head);
            edits += 6;
        } else {
            qkv_text_append(&text, edits++, 1);
        }
    }
    if (!text.failed) return text.data;
    qkv_text_release(&text);
    return NULL;
}

/* A side that was left out is one row or column without a label. */
static int read_sides(const qkv_figure *fig, const qkv_figure_side *given, size_t n,
                      side_list *list, qkv_error *err) {
    list->items = qkv_calloc(n ? n : 1, sizeof *list->items);
    if (!list->items) return qkv_fail_memory(err);
    list->n = n ? n : 1;
    for (size_t i = 0; i < list->n; i++) {
        qkv_figure_side from = QKV_FIGURE_SIDE_INIT;
        const int status =
            n ? qkv_sized_read_item(&from, sizeof from, given, i, "qkv_figure_side", err) : QKV_OK;
        if (status != QKV_OK) return status;
        list->items[i].label = qkv_strdup(from.label ? from.label : "");
        list->items[i].edits = fill_placeholders(fig, from.edits ? from.edits : "");
        if (!list->items[i].label || !list->items[i].edits) return qkv_fail_memory(err);
    }
    return QKV_OK;
}

static char *join(const char *first, const char *second, const char *between) {
    if (!first[0] || !second[0]) return qkv_strdup(first[0] ? first : second);
    return qkv_figure_printf("%s%s%s", first, between, second);
}

/* "rows: LABEL: EDITS; LABEL: EDITS" */
static void note_sides(qkv_figure *fig, const char *what, const side_list *list) {
    if (list->n == 1 && !list->items[0].label[0] && !list->items[0].edits[0]) return;
    qkv_text_printf(&fig->operations, "%s%s: ", fig->operations.length ? " \xc2\xb7 " : "", what);
    for (size_t i = 0; i < list->n; i++) {
        const side *item = &list->items[i];
        qkv_text_printf(&fig->operations, "%s%s: %s", i ? "; " : "", item->label,
                        item->edits[0] ? item->edits : "unmodified");
    }
}

/* The panels of a prompt in one row of edits: row `at` of the figure, in `block`. */
static int set_line(qkv_figure *fig, size_t at, size_t block, size_t prompt, const side *row,
                    const side_list *cols, qkv_error *err) {
    char *plain = qkv_figure_name_input(fig, qkv_figure_printf("Unmodified"), prompt);
    int status = qkv_figure_set_baseline(fig, at, block, prompt, plain, err);
    for (size_t c = 0; c < cols->n && status == QKV_OK; c++) {
        const side *col = &cols->items[c];
        char *label = join(row->label, col->label, ", ");
        const figure_cell cell = {.prompt = prompt,
                                  .edits = join(row->edits, col->edits, " + "),
                                  .title = qkv_figure_name_input(fig, label, prompt)};
        status = qkv_figure_set(fig, at, block * cols->n + c, cell, err);
    }
    return status;
}

static int lay_out(qkv_figure *fig, const side_list *rows, const side_list *cols, qkv_error *err) {
    const size_t n = fig->prompts.n;
    const int stacked = fig->options.n_rows == 0 && fig->options.n_cols > 0;
    int status = qkv_figure_reserve(fig, stacked ? n : rows->n, stacked ? 1 : n, cols->n, err);
    note_sides(fig, "rows", rows);
    note_sides(fig, "columns", cols);
    for (size_t i = 0; i < n * rows->n && status == QKV_OK; i++) {
        const size_t prompt = i % n, row = i / n;
        status = set_line(fig, stacked ? prompt : row, stacked ? 0 : prompt, prompt,
                          &rows->items[row], cols, err);
    }
    return status;
}

int qkv_figure_grid_cells(qkv_figure *fig, qkv_error *err) {
    const qkv_figure_options *o = &fig->options;
    side_list rows = {0}, cols = {0};
    int status = read_sides(fig, o->rows, o->n_rows, &rows, err);
    if (status == QKV_OK) status = read_sides(fig, o->cols, o->n_cols, &cols, err);
    if (status == QKV_OK) status = lay_out(fig, &rows, &cols, err);
    release(&rows);
    release(&cols);
    return status;
}
