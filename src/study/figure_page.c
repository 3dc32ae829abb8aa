/* A figure as a grid of matrices: scale, colour range, labels, style. draw/ makes the page of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/model.h"
#include "study/figure.h"
#include "study/print.h"

/* ---- scale and colours ---- */

/* The papers' look is for short prompts: of a longer one it shows a sink and nothing else. */
enum { FEW_TOKENS = 40 };
static const double USUAL_GAMMA = 0.5, CHOSEN_GAMMA = 1 / 3.0;

static size_t longest_prompt(const qkv_figure *fig) {
    size_t most = 0;
    for (size_t i = 0; i < fig->prompts.n; i++) {
        if (fig->prompts.items[i].n_tokens > most) most = fig->prompts.items[i].n_tokens;
    }
    return most;
}

/* Scores are of one order of magnitude: they stay linear. */
static void choose_scale(qkv_figure *fig, int is_long) {
    const qkv_figure_options *o = &fig->options;
    /* A log scale has no place for a range that begins below 0. */
    const int fits = o->diff || o->range[0] >= 0;
    fig->scale = o->scale;
    fig->gamma = o->gamma > 0 ? o->gamma : USUAL_GAMMA;
    if (!is_long || !fits || fig->site != QKV_SITE_PATTERN) return;
    if (o->scale != QKV_SCALE_LINEAR || o->always_linear) return;
    fig->scale = o->diff ? QKV_SCALE_POWER : QKV_SCALE_LOG;
    fig->gamma = CHOSEN_GAMMA;
}

/* The mask of a cell's layer, where its rows are queries and its columns keys. Pooled maps keep the
 * causal one when both sides are pooled alike: what lies above the diagonal is masked as a whole. */
static void set_mask(const qkv_figure *fig, figure_cell *cell, const qkv_model *model) {
    const int is_pooled = cell->n_rows < fig->prompts.items[cell->prompt].n_tokens;
    if (fig->kind == QKV_FIGURE_ROWS || fig->site != QKV_SITE_PATTERN) return;
    if (is_pooled && fig->options.skip_keys > 0) return;
    cell->causal = qkv_model_get_info(model)->causal;
    if (!is_pooled) cell->window = qkv_model_window(model, cell->layer);
}

void qkv_figure_choose_look(qkv_figure *fig, const qkv_model *model) {
    const qkv_figure_options *o = &fig->options;
    const int is_long = longest_prompt(fig) > FEW_TOKENS;
    const int is_published = fig->kind == QKV_FIGURE_MODIFY || fig->kind == QKV_FIGURE_MEAN;
    choose_scale(fig, is_long);
    fig->is_signed = o->diff || fig->site != QKV_SITE_PATTERN;
    fig->colormap = o->colormap ? o->colormap : QKV_COLORMAP_COOLWARM;
    fig->masked = o->masked                  ? o->masked
                  : is_published && !is_long ? QKV_MASKED_ZERO
                                             : QKV_MASKED_WHITE;
    for (size_t i = 0; i < fig->rows * fig->cols; i++) set_mask(fig, &fig->cells[i], model);
}

/* ---- the colour range ---- */

static void find_extremes(const qkv_figure *fig, double *least, double *most) {
    *least = INFINITY;
    *most = -INFINITY;
    for (size_t c = 0; c < fig->rows * fig->cols; c++) {
        const size_t n = fig->cells[c].n_rows * fig->cells[c].n_cols;
        for (size_t i = 0; i < n; i++) {
            *least = fmin(*least, fig->cells[c].values[i]);
            *most = fmax(*most, fig->cells[c].values[i]);
        }
    }
}

/* Weights go from 0 to 1 whatever is drawn, so that figures compare. What has no such range, or
 * would be drowned in it (differences, the keys left when a sink is skipped), gets its own. */
void qkv_figure_choose_range(qkv_figure *fig) {
    const qkv_figure_options *o = &fig->options;
    fig->low = 0;
    fig->high = 1;
    if (o->range[0] != 0 || o->range[1] != 0) {
        fig->low = o->range[0];
        fig->high = o->range[1];
        return;
    }
    double least, most;
    find_extremes(fig, &least, &most);
    if (fig->is_signed) {
        fig->high = fmax(fabs(least), fabs(most));
        if (!(fig->high > 0)) fig->high = 1;
        fig->low = -fig->high;
    } else if ((o->skip_keys > 0 || o->auto_range) && most > 0) {
        fig->high = fmin(most, 1);
    }
}

/* Four decades, also where the range ends far below 1, and more where even a uniform row would lie
 * near the floor: its weights are a decade above it. */
double qkv_figure_log_floor(const qkv_figure *fig) {
    if (fig->low > 0) return fig->low;
    const double uniform = 1.0 / (double)longest_prompt(fig);
    return fmin(1e-4 * fmin(fig->high, 1), pow(10, floor(log10(uniform / 10) + 1e-9)));
}

/* ---- labels ---- */

static int shows_tokens(const qkv_figure *fig) {
    return fig->options.labels == QKV_LABELS_AUTO || fig->options.labels == QKV_LABELS_TOKENS;
}

int qkv_figure_make_labels(qkv_figure *fig, const qkv_model *model, qkv_error *err) {
    int status = QKV_OK;
    for (size_t p = 0; p < fig->prompts.n && status == QKV_OK; p++) {
        status = qkv_prompt_make_labels(&fig->prompts.items[p], model, err);
    }
    return status;
}

/* ---- panels ---- */

/* "sink", and the keys' labels or indices; the array is the caller's to free, the strings are not.
 */
static int label_columns(const qkv_figure *fig, size_t prompt, const char ***out, qkv_text *indices,
                         qkv_error *err) {
    char *const *labels = shows_tokens(fig) ? fig->prompts.items[prompt].labels : NULL;
    const size_t skip = (size_t)fig->options.skip_keys, n = qkv_figure_n_cols(fig, prompt);
    const char **columns = *out = qkv_calloc(n, sizeof *columns);
    for (size_t i = 1; i < n && !labels; i++) {
        qkv_text_printf(indices, "%zu", skip + i - 1);
        qkv_text_append(indices, "", 1);
    }
    if (!columns || indices->failed) return qkv_fail_memory(err);
    const char *next = indices->data;
    columns[0] = "sink";
    for (size_t i = 1; i < n; i++) {
        columns[i] = labels ? labels[skip + i - 1] : next;
        if (!labels) next += strlen(next) + 1;
    }
    return QKV_OK;
}

static int set_panels(const qkv_figure *fig, qkv_grid *grid, size_t prompt, qkv_error *err) {
    const size_t skip = (size_t)fig->options.skip_keys;
    const char *const *labels =
        shows_tokens(fig) ? (const char *const *)fig->prompts.items[prompt].labels : NULL;
    const int is_heads = fig->kind == QKV_FIGURE_HEADS;
    const char **with_sink = NULL;
    qkv_text indices = {0};
    int status = QKV_OK;
    if (fig->options.sink_column) status = label_columns(fig, prompt, &with_sink, &indices, err);
    for (size_t i = 0; i < fig->rows * fig->cols && status == QKV_OK; i++) {
        const figure_cell *cell = &fig->cells[i];
        if (cell->prompt != prompt) continue;
        const qkv_panel panel = {
            .size = sizeof(qkv_panel),
            .values = cell->values,
            .n_rows = (int32_t)cell->n_rows,
            .n_cols = (int32_t)cell->n_cols,
            .title = is_heads ? cell->above : cell->title,
            .side = cell->side,
            .row_labels = is_heads         ? NULL
                          : fig->row_names ? (const char *const *)fig->row_names
                                           : labels,
            .col_labels = is_heads    ? NULL
                          : with_sink ? with_sink
                          : labels    ? labels + skip
                                      : NULL,
            .first_col = (int32_t)skip,
            .causal = cell->causal,
            .window = cell->window,
            .extra_cols = fig->options.sink_column != 0,
            .has_gaps = fig->site == QKV_SITE_SCORES,
            .borrowed = 1, /* by the figure's own grid */
        };
        status = qkv_grid_set_panel(grid, (int32_t)(i / fig->cols), (int32_t)(i % fig->cols),
                                    &panel, err);
    }
    free(with_sink);
    qkv_text_release(&indices);
    return status;
}

static int make_grid(qkv_figure *fig, qkv_error *err) {
    qkv_grid *grid = NULL;
    int status = qkv_grid_new(&grid, (int32_t)fig->rows, (int32_t)fig->cols, err);
    for (size_t p = 0; p < fig->prompts.n && status == QKV_OK; p++) {
        status = set_panels(fig, grid, p, err);
    }
    if (status == QKV_OK) {
        fig->grid = grid;
    } else {
        qkv_grid_free(grid);
    }
    return status;
}

/* ---- style ---- */

static const double HEADS_GAP = 4; /* points between small maps */

/* NULL: none. */
static const char *bar_label(const qkv_figure *fig) {
    const char *given = fig->options.bar_label;
    if (given) return given[0] ? given : NULL;
    if (fig->site == QKV_SITE_SCORES) {
        return fig->options.diff ? "Change of Attention Score" : "Attention Score";
    }
    return fig->options.diff ? "Change of Attention Weight" : "Attention Weight";
}

/* What the kind of figure asks of the page. */
static void style_kind(const qkv_figure *fig, qkv_grid_style *style) {
    if (fig->kind == QKV_FIGURE_HEADS) {
        style->row_axis = style->col_axis = NULL;
        style->labels = 0;
        style->cell_values = 0;
        style->gap = HEADS_GAP;
        style->panel_size = qkv_figure_heads_size(fig);
        style->fixed_panel_size = 1;
    } else if (fig->kind == QKV_FIGURE_ROWS) {
        if (style->row_axis) style->row_axis = fig->options.layer == QKV_AUTO ? "Layer" : "Head";
        style->panel_size = qkv_figure_rows_size(fig);
    } else if (fig->kind == QKV_FIGURE_PATTERN) {
        style->panel_size = qkv_figure_pattern_size(fig);
    }
}

static void make_style(const qkv_figure *fig, qkv_grid_style *style) {
    static const int cell_values[] = {
        [QKV_VALUES_AUTO] = -1, [QKV_VALUES_ALWAYS] = 1, [QKV_VALUES_NEVER] = 0};
    const qkv_figure_options *o = &fig->options;
    const char *title = o->title ? o->title : fig->title;
    *style = (qkv_grid_style)QKV_GRID_STYLE_INIT;
    style->title = title && title[0] ? title : NULL;
    style->small_print = o->hide_notes ? NULL : fig->small_print;
    style->text = o->text;
    style->font = o->font;
    style->width = o->width;
    style->font_size = o->font_size;
    style->bar_label = bar_label(fig);
    style->row_axis = o->hide_axes ? NULL : "Query";
    style->col_axis = o->hide_axes ? NULL : "Key";
    style->low = fig->low;
    style->high = fig->high;
    style->scale = fig->scale;
    style->gamma = fig->gamma;
    style->log_floor = qkv_figure_log_floor(fig);
    style->diverging = fig->is_signed;
    style->colormap = fig->colormap;
    style->masked = fig->masked;
    style->fixed_dpi = o->dpi > 0;
    style->fixed_panel_size = o->panel_size > 0;
    style->labels = o->labels != QKV_LABELS_NONE;
    style->cell_values = cell_values[o->values];
    style_kind(fig, style);
    style->dpi = qkv_print_dpi(o->dpi, o->width);
    if (o->panel_size > 0) style->panel_size = o->panel_size;
    style->recipe = o->no_recipe ? NULL : fig->recipe;
}

int qkv_figure_page(qkv_figure *fig, const qkv_grid **grid, qkv_grid_style *style, qkv_error *err) {
    const int status = fig->grid ? QKV_OK : make_grid(fig, err);
    make_style(fig, style);
    *grid = fig->grid;
    return status;
}
