/*
 * qkv figure grid: any arrangement. The variant of a cell is its row's edits and its column's,
 * joined; a side without edits adds nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/figure.h"

static const figure_args defaults = {FIGURE_DEFAULTS};

static const cli_option options[] = {
    FIGURE_INPUT_OPTIONS,
    FIGURE_OPTION("row", "LABEL=EDITS", CLI_LIST, rows,
                  "a row: its label, and the edits of all its panels"),
    FIGURE_OPTION("col", "LABEL=EDITS", CLI_LIST, cols, "a column, likewise"),
    CLI_SOURCE_OPTIONS(figure_args),
    FIGURE_OPTION("show", "pattern|scores", CLI_CHOICE, show, "what is drawn (default pattern)"),
    FIGURE_DRAWING_OPTIONS,
};

static int run_grid(const cli_call *call, qkv_error *err);

const cli_command cli_command_figure_grid = {
    .name = "figure grid",
    .summary = "draw a head's attention under edits of your own",
    .synopsis = "[-m MODEL] [-p TEXT] [--layer L] [--head H] --row LABEL=EDITS... --col "
                "LABEL=EDITS... -o OUT...",
    .description =
        "Draws one panel for every row and column, with the edits of both. No EDITS behind the = "
        "means none. In EDITS {layer} and {head} stand for the layer and head that are shown. How "
        "edits are written: 'qkv help notation'.\n"
        "\n"
        "  qkv figure grid --row 'First token=q@{layer}.h{head}[0]=zero' --row 'All=' \\\n"
        "      --col 'Plain=' --col 'Half keys=k@{layer}.h{head}=scale:0.5' -o grid.svg\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .run = run_grid,
};

/* One row or column: LABEL=EDITS taken apart, the placeholders filled in. */
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

static char *fill_placeholders(const figure *fig, const char *edits) {
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

static int split(const figure *fig, const cli_list *given, side_list *list, qkv_error *err) {
    list->n = given->n ? given->n : 1;
    list->items = qkv_calloc(list->n, sizeof *list->items);
    if (!list->items) return qkv_fail_memory(err);
    for (size_t i = 0; i < list->n; i++) {
        const char *text = given->n ? given->items[i].value : "=";
        const size_t label = strcspn(text, "=");
        list->items[i].label = qkv_strndup(text, label);
        list->items[i].edits = fill_placeholders(fig, text + label + 1);
        if (!list->items[i].label || !list->items[i].edits) return qkv_fail_memory(err);
    }
    return QKV_OK;
}

static int check_sides(const cli_list *list, const char *option, qkv_error *err) {
    for (size_t i = 0; i < list->n; i++) {
        if (!strchr(list->items[i].value, '=')) {
            return cli_usage(err, "%s wants LABEL=EDITS, not '%s'", option, list->items[i].value);
        }
    }
    return QKV_OK;
}

static int check_args(const figure_args *args, qkv_error *err) {
    if (args->prompts.n > 1) return cli_usage(err, "this figure shows one prompt");
    if (args->rows.n + args->cols.n == 0) {
        return cli_usage(err, "nothing to draw: add --row or --col LABEL=EDITS");
    }
    const int status = check_sides(&args->rows, "--row", err);
    return status == QKV_OK ? check_sides(&args->cols, "--col", err) : status;
}

static char *join(const char *first, const char *second, const char *between) {
    if (!first[0] || !second[0]) return qkv_strdup(first[0] ? first : second);
    return figure_printf("%s%s%s", first, between, second);
}

static int set_cell(figure *fig, size_t row, size_t col, const side *of_row, const side *of_col,
                    qkv_error *err) {
    char *edits = join(of_row->edits, of_col->edits, " + ");
    char *title = join(of_row->label, of_col->label, ", ");
    const int status = figure_set(fig, row, col, 0, edits, title, err);
    free(edits);
    free(title);
    return status;
}

/* "rows: LABEL: EDITS; LABEL: EDITS" */
static void note_sides(figure *fig, const char *what, const side_list *list) {
    if (list->n == 1 && !list->items[0].label[0] && !list->items[0].edits[0]) return;
    qkv_text_printf(&fig->operations, "%s%s: ", fig->operations.length ? " \xc2\xb7 " : "", what);
    for (size_t i = 0; i < list->n; i++) {
        const side *item = &list->items[i];
        qkv_text_printf(&fig->operations, "%s%s: %s", i ? "; " : "", item->label,
                        item->edits[0] ? item->edits : "unmodified");
    }
}

static int lay_out(figure *fig, const side_list *rows, const side_list *cols, qkv_error *err) {
    int status = figure_reserve(fig, rows->n, cols->n, err);
    note_sides(fig, "rows", rows);
    note_sides(fig, "columns", cols);
    for (size_t r = 0; r < rows->n && status == QKV_OK; r++) {
        status = figure_set_baseline(fig, r, 0, "Unmodified", err);
        for (size_t c = 0; c < cols->n && status == QKV_OK; c++) {
            status = set_cell(fig, r, c, &rows->items[r], &cols->items[c], err);
        }
    }
    return status;
}

static int run_grid(const cli_call *call, qkv_error *err) {
    const figure_args *args = call->args;
    figure fig = {0};
    side_list rows = {0}, cols = {0};
    int status = check_args(args, err);
    if (status == QKV_OK) status = figure_open(&fig, call, figure_prompts, 1, err);
    fig.warn = 1;
    if (status == QKV_OK) status = split(&fig, &args->rows, &rows, err);
    if (status == QKV_OK) status = split(&fig, &args->cols, &cols, err);
    if (status == QKV_OK) status = lay_out(&fig, &rows, &cols, err);
    if (status == QKV_OK) status = figure_finish(&fig, err);
    figure_close(&fig);
    release(&rows);
    release(&cols);
    return status;
}
