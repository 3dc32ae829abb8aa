/* Hands a figure's matrices to the grid: labels, colour range, style, files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/figure.h"

/* ---- the colour range ---- */

int figure_check_range(const figure_args *args, double *low, double *high, qkv_error *err) {
    if (!args->range) return QKV_OK;
    const int status = cli_parse_range(args->range, low, high, err);
    if (status != QKV_OK) return status;
    if (args->diff && *low != -*high) {
        return cli_usage(err, "--range of differences must be the same to both sides, e.g. -1,1");
    }
    if (args->scale == QKV_SCALE_LOG && *low < 0) {
        return cli_usage(err, "--scale log cannot show values below 0");
    }
    return QKV_OK;
}

static void find_extremes(const figure *fig, double *least, double *most) {
    *least = INFINITY;
    *most = -INFINITY;
    for (size_t c = 0; c < fig->rows * fig->cols; c++) {
        const size_t n_tokens = fig->prompts[fig->cells[c].prompt].n_tokens;
        const size_t n = n_tokens * figure_n_cols(fig, fig->cells[c].prompt);
        for (size_t i = 0; i < n; i++) {
            *least = fmin(*least, fig->cells[c].values[i]);
            *most = fmax(*most, fig->cells[c].values[i]);
        }
    }
}

/* Weights go from 0 to 1 whatever is drawn, so that figures compare. What has no such range, or
 * would be drowned in it (differences, the keys left when a sink is skipped), gets its own. */
static int choose_range(figure *fig, qkv_error *err) {
    const figure_args *args = fig->args;
    fig->low = 0;
    fig->high = 1;
    if (args->range) return figure_check_range(args, &fig->low, &fig->high, err);
    double least, most;
    find_extremes(fig, &least, &most);
    if (args->diff) {
        fig->high = fmax(fabs(least), fabs(most));
        if (!(fig->high > 0)) fig->high = 1;
        fig->low = -fig->high;
    } else if (fig->site != QKV_SITE_PATTERN) {
        fig->low = least;
        fig->high = most > least ? most : least + 1;
    } else if (args->skip_keys > 0 && most > 0) {
        fig->high = fmin(most, 1);
    }
    if (args->scale == QKV_SCALE_LOG && fig->low < 0) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "--scale log cannot show values below 0");
    }
    return QKV_OK;
}

double figure_gamma(const figure_args *args) {
    return args->gamma > 0 ? args->gamma : 0.5;
}

/* Four decades, also where the range ends far below 1. */
double figure_log_floor(const figure *fig) {
    return 1e-4 * fmin(fig->high, 1);
}

/* ---- labels ---- */

enum { MOST_OF_A_LABEL = 200 }; /* characters */

/* The text of a token as a label: the blank that begins most words would only shift it. Its number,
 * where the model has no tokenizer. */
static char *make_label(const figure *fig, int32_t token, qkv_error *err) {
    char *bytes = NULL;
    size_t length = 0;
    if (strcmp(qkv_model_get_info(fig->model)->tokenizer, "none") == 0) {
        char *number = figure_printf("%d", (int)token);
        if (!number) qkv_fail_memory(err);
        return number;
    }
    if (qkv_token_text(fig->model, &bytes, &length, token, err) != QKV_OK) return NULL;
    const size_t blank = length > 1 && bytes[0] == ' ';
    const int only_blanks = length > 0 && strspn(bytes, " ") == length;
    qkv_text label = {0};
    if (only_blanks) {
        for (size_t i = 0; i < length && i < MOST_OF_A_LABEL; i++)
            qkv_text_puts(&label, "\xe2\x90\xa3"); /* U+2423 */
    } else {
        qkv_text_append_short(&label, bytes + blank, length - blank, MOST_OF_A_LABEL);
        if (length == 0) qkv_text_puts(&label, "");
    }
    qkv_text_free(bytes);
    if (!label.failed) return label.data;
    qkv_fail_memory(err);
    return NULL;
}

static void free_labels(char **labels, size_t n) {
    for (size_t i = 0; labels && i < n; i++) free(labels[i]);
    free(labels);
}

static int make_labels(const figure *fig, const cli_prompt *prompt, char ***out, qkv_error *err) {
    char **labels = qkv_calloc(prompt->n_tokens, sizeof *labels);
    if (!labels) return qkv_fail_memory(err);
    for (size_t i = 0; i < prompt->n_tokens; i++) {
        labels[i] = make_label(fig, prompt->tokens[i], err);
        if (labels[i]) continue;
        free_labels(labels, i);
        return err->status;
    }
    *out = labels;
    return QKV_OK;
}

/* ---- panels ---- */

/* "sink", and the keys' labels or indices; the array is the caller's to free, the strings are not.
 * Without a sink column there is nothing to add: NULL. */
static const char **label_columns(const figure *fig, size_t prompt, char **labels,
                                  qkv_text *indices, qkv_error *err) {
    const size_t skip = (size_t)fig->args->skip_keys, n = figure_n_cols(fig, prompt);
    const char **columns = qkv_calloc(n, sizeof *columns);
    for (size_t i = 1; i < n && !labels; i++) {
        qkv_text_printf(indices, "%zu", skip + i - 1);
        qkv_text_append(indices, "", 1);
    }
    if (!columns || indices->failed) {
        free(columns);
        qkv_fail_memory(err);
        return NULL;
    }
    const char *next = indices->data;
    columns[0] = "sink";
    for (size_t i = 1; i < n; i++) {
        columns[i] = labels ? labels[skip + i - 1] : next;
        if (!labels) next += strlen(next) + 1;
    }
    return columns;
}

static int set_panels(const figure *fig, qkv_grid *grid, size_t prompt, char **labels,
                      qkv_error *err) {
    const size_t skip = (size_t)fig->args->skip_keys;
    const size_t n_tokens = fig->prompts[prompt].n_tokens;
    const char **with_sink = NULL;
    qkv_text indices = {0};
    int status = QKV_OK;
    if (fig->args->sink_column) {
        with_sink = label_columns(fig, prompt, labels, &indices, err);
        if (!with_sink) status = err->status;
    }
    for (size_t i = 0; i < fig->rows * fig->cols && status == QKV_OK; i++) {
        const figure_cell *cell = &fig->cells[i];
        if (cell->prompt != prompt) continue;
        const qkv_panel panel = {
            .values = cell->values,
            .n_rows = (int32_t)n_tokens,
            .n_cols = (int32_t)figure_n_cols(fig, prompt),
            .title = cell->title,
            .row_labels = (const char *const *)labels,
            .col_labels = with_sink ? with_sink
                          : labels  ? (const char *const *)labels + skip
                                    : NULL,
            .first_col = (int32_t)skip,
        };
        status = qkv_grid_set_panel(grid, (int32_t)(i / fig->cols), (int32_t)(i % fig->cols),
                                    &panel, err);
    }
    free(with_sink);
    qkv_text_release(&indices);
    return status;
}

static int shows_tokens(const figure_args *args) {
    return args->labels != FIGURE_LABELS_INDEX && args->labels != FIGURE_LABELS_NONE;
}

static int make_grid(const figure *fig, qkv_grid **grid, qkv_error *err) {
    int status = qkv_grid_new(grid, (int32_t)fig->rows, (int32_t)fig->cols, err);
    for (size_t p = 0; p < fig->n_prompts && status == QKV_OK; p++) {
        char **labels = NULL;
        if (shows_tokens(fig->args)) {
            status = make_labels(fig, &fig->prompts[p], &labels, err);
        }
        if (status == QKV_OK) status = set_panels(fig, *grid, p, labels, err);
        free_labels(labels, fig->prompts[p].n_tokens);
    }
    return status;
}

/* ---- style ---- */

static const char *bar_label(const figure *fig) {
    if (fig->site == QKV_SITE_SCORES) {
        return fig->args->diff ? "Change of Attention Score" : "Attention Score";
    }
    return fig->args->diff ? "Change of Attention Weight" : "Attention Weight";
}

static qkv_grid_style make_style(const figure *fig, const char *small_print, const char *recipe) {
    static const int cell_values[] = {-1, 1, 0}; /* auto, always, never */
    const figure_args *args = fig->args;
    const char *title = args->title ? args->title : fig->title;
    qkv_grid_style style;
    qkv_grid_style_default(&style);
    style.title = title && title[0] ? title : NULL;
    style.small_print = small_print;
    style.bar_label = bar_label(fig);
    style.row_axis = args->axis_labels ? "Query" : NULL;
    style.col_axis = args->axis_labels ? "Key" : NULL;
    style.low = fig->low;
    style.high = fig->high;
    style.scale = (qkv_scale)args->scale;
    style.gamma = figure_gamma(args);
    style.log_floor = figure_log_floor(fig);
    style.diverging = args->diff;
    style.labels = args->labels != FIGURE_LABELS_NONE;
    style.cell_values = cell_values[args->values];
    if (args->dpi > 0) style.dpi = args->dpi;
    style.panel_size = args->panel_size;
    style.recipe = recipe;
    return style;
}

/* ---- files ---- */

/* What was asked for by name and could not be drawn. */
static void warn_undrawn(const figure_args *args, const qkv_grid_report *report) {
    const int n = (int)report->panels;
    if (args->values == FIGURE_VALUES_ALWAYS && report->without_values) {
        fprintf(stderr,
                "qkv: warning: --values always: no numbers in %d of %d panels, their cells "
                "are too small; try a larger --panel-size\n",
                (int)report->without_values, n);
    }
    if (args->labels == FIGURE_LABELS_TOKENS && report->with_indices) {
        fprintf(stderr,
                "qkv: warning: --labels tokens: positions in place of tokens at %d of %d "
                "panels, their cells are too small; try a larger --panel-size\n",
                (int)report->with_indices, n);
    }
    if (args->labels == FIGURE_LABELS_TOKENS && report->thinned) {
        fprintf(stderr,
                "qkv: warning: --labels tokens: only every second or third token at %d of "
                "%d panels, their cells are too small; try a larger --panel-size\n",
                (int)report->thinned, n);
    }
}

/* What cannot be drawn is told before anything is written. */
static int check_drawing(const figure *fig, const qkv_grid *grid, const qkv_grid_style *style,
                         qkv_error *err) {
    const cli_list *outputs = &fig->args->outputs;
    qkv_grid_report report = {0};
    int status = QKV_OK;
    for (size_t i = 0; i < outputs->n && status == QKV_OK; i++) {
        status = qkv_grid_check(grid, style, outputs->items[i].value, &report, err);
    }
    if (status == QKV_OK) warn_undrawn(fig->args, &report);
    return status;
}

static int write_outputs(const figure *fig, const char *small_print, const char *recipe,
                         qkv_error *err) {
    qkv_grid *grid = NULL;
    const cli_list *outputs = &fig->args->outputs;
    const qkv_grid_style style = make_style(fig, small_print, recipe);
    int status = make_grid(fig, &grid, err);
    if (status == QKV_OK) status = check_drawing(fig, grid, &style, err);
    for (size_t i = 0; i < outputs->n && status == QKV_OK; i++) {
        status = qkv_grid_write(grid, &style, outputs->items[i].value, err);
    }
    qkv_grid_free(grid);
    return status;
}

int figure_draw(figure *fig, qkv_error *err) {
    qkv_text small_print = {0};
    char *recipe = NULL;
    int status = choose_range(fig, err);
    if (status == QKV_OK) status = figure_small_print(fig, &small_print, err);
    if (status == QKV_OK) status = figure_recipe(fig, &recipe, err);
    if (status == QKV_OK) status = write_outputs(fig, small_print.data, recipe, err);
    if (status == QKV_OK && fig->args->data) status = figure_write_data(fig, recipe, err);
    if (status == QKV_OK) status = figure_write_reports(fig, small_print.data, recipe, err);
    qkv_text_release(&small_print);
    free(recipe);
    return status;
}
