/*
 * The options of a figure: read from a caller's struct and checked, as far as no model is needed.
 * Messages name fields between backquotes, so that a program can put its own names there.
 */
#include <math.h>
#include <stdlib.h>

#include "base/number_list.h"
#include "base/sized.h"
#include "study/figure.h"
#include "study/print.h"

/* ---- lists ---- */

static int check_eps(const char *list, qkv_error *err) {
    char *all = NULL;
    int status = qkv_number_list_expand(&all, list, err);
    const char *at = all, *text;
    size_t length;
    double value;
    while (status == QKV_OK && qkv_number_list_next(&at, &text, &length, &value)) {
        if (isnan(value))
            status = qkv_fail(err, QKV_ERR_ARGUMENT,
                              "`eps` wants " QKV_NUMBER_LIST_WAYS "; '%.*s' is not a number",
                              (int)length, text);
    }
    free(all);
    return status;
}

static int check_sides(const qkv_figure_side *sides, size_t n, const char *name, qkv_error *err) {
    int status = QKV_OK;
    if (n && !sides) return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` is NULL", name);
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        qkv_figure_side side = QKV_FIGURE_SIDE_INIT;
        status = qkv_sized_read_item(&side, sizeof side, sides, i, "qkv_figure_side", err);
    }
    return status;
}

static int check_sources(const qkv_figure_options *o, qkv_error *err) {
    int status = qkv_prompts_check(o->sources, o->n_sources, "sources", err);
    for (size_t i = 0; i < o->n_sources && status == QKV_OK; i++) {
        qkv_prompt source = QKV_PROMPT_INIT;
        status = qkv_sized_read_item(&source, sizeof source, o->sources, i, "qkv_prompt", err);
        if (status == QKV_OK && !source.name) {
            status = qkv_fail(err, QKV_ERR_ARGUMENT, "a source needs a name, for patch:NAME");
        }
    }
    return status;
}

static int check_lists(const qkv_figure_options *o, qkv_error *err) {
    int status = qkv_prompts_check(o->prompts, o->n_prompts, "prompts", err);
    if (status == QKV_OK) status = check_sources(o, err);
    if (status == QKV_OK)
        status = qkv_prompts_check(o->set_prompts, o->n_set_prompts, "set_prompts", err);
    if (status == QKV_OK && o->n_set_prompts > FIGURE_MOST_SET)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "`set_prompts` has %zu prompts; a figure keeps them in its recipe, and "
                          "the most is %d",
                          o->n_set_prompts, FIGURE_MOST_SET);
    if (status == QKV_OK) status = check_sides(o->rows, o->n_rows, "rows", err);
    if (status == QKV_OK) status = check_sides(o->cols, o->n_cols, "cols", err);
    for (size_t i = 0; i < o->n_command && status == QKV_OK; i++) {
        if (o->command && o->command[i]) continue;
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "`command` has a word that is NULL");
    }
    return status;
}

/* ---- what a kind has ---- */

/* A struct that is 0 where nothing was set asks for nothing, too. */
static int is_query_given(const qkv_figure_options *o) {
    return o->query != -1 && o->query != 0;
}

/* Small maps have no room for anything but colours. */
static int check_heads(const qkv_figure_options *o, qkv_error *err) {
    if (o->head != QKV_AUTO) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`head` is not for the figure heads: it shows all");
    }
    if (is_query_given(o)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`query` belongs to the figure rows");
    }
    if (o->baseline) {
        return qkv_fail(
            err, QKV_ERR_ARGUMENT,
            "`baseline` is not for the figure heads: leave out `variant`, or use `diff`");
    }
    if (o->labels == QKV_LABELS_TOKENS || o->labels == QKV_LABELS_INDEX || o->hide_axes ||
        o->values == QKV_VALUES_ALWAYS) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the small maps of the figure heads have no labels and no numbers");
    }
    return QKV_OK;
}

/* Of figures whose edits are `variant`. */
static int check_changes(const qkv_figure_options *o, qkv_error *err) {
    if ((o->diff || o->baseline) && !(o->variant && o->variant[0])) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` needs edits: give `variant`",
                        o->diff ? "diff" : "baseline");
    }
    return QKV_OK;
}

static int check_watched(const qkv_figure_options *o, qkv_figure_kind kind, qkv_error *err) {
    if (o->layers && o->layer != QKV_AUTO) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`layer` and `layers` exclude each other");
    }
    const int status = check_changes(o, err);
    if (status != QKV_OK) return status;
    if (o->masked && kind == QKV_FIGURE_ROWS) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`masked` is not for the figure rows: its rows are not queries");
    }
    if (o->sink_column || o->report) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`%s` is not for the figure %s: it is about one head",
                        o->report ? "report" : "sink_column", qkv_figure_kind_name(kind));
    }
    return kind == QKV_FIGURE_HEADS ? check_heads(o, err) : QKV_OK;
}

static int check_pattern(const qkv_figure_options *o, qkv_error *err) {
    if (o->layers || is_query_given(o)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`%s` is not for the figure pattern: it shows whole maps of one layer",
                        o->layers ? "layers" : "query");
    }
    if (o->heads && (o->head != QKV_AUTO || o->layer == QKV_AUTO)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        o->head != QKV_AUTO ? "`head` and `heads` exclude each other"
                                            : "several heads need a `layer`");
    }
    if (o->heads && (o->sink_column || o->report)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` is about one head: give a single `head`",
                        o->report ? "report" : "sink_column");
    }
    return check_changes(o, err);
}

static int check_kind(const qkv_figure_options *o, qkv_figure_kind kind, qkv_error *err) {
    const int is_grid = kind == QKV_FIGURE_GRID, is_pattern = kind == QKV_FIGURE_PATTERN;
    const int is_watched = kind == QKV_FIGURE_HEADS || kind == QKV_FIGURE_ROWS;
    if ((kind == QKV_FIGURE_MODIFY || kind == QKV_FIGURE_HEADS) && o->n_prompts > 1) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "this figure shows one prompt");
    }
    if (kind != QKV_FIGURE_MODIFY && o->eps) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`eps` belongs to the figure modify");
    }
    if (is_grid && o->n_rows + o->n_cols == 0 && o->n_prompts < 2) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "nothing to draw: give `rows`, `cols` or several prompts");
    }
    if ((is_grid || is_watched || is_pattern) && o->all_heads) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`all_heads` is not for this figure: edits name heads");
    }
    if (!is_pattern && o->heads) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`heads` belongs to the figure pattern");
    }
    if (!is_watched && !is_pattern && (o->layers || o->variant || is_query_given(o))) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`layers`, `variant` and `query` belong to the figures heads and rows");
    }
    if (!is_grid && (o->n_rows || o->n_cols || o->n_sources || o->n_set_prompts || o->show)) {
        return qkv_fail(
            err, QKV_ERR_ARGUMENT,
            "`rows`, `cols`, `sources`, `set_prompts` and `show` belong to the figure grid");
    }
    if (is_watched) return check_watched(o, kind, err);
    if (is_pattern) return check_pattern(o, err);
    return o->eps ? check_eps(o->eps, err) : QKV_OK;
}

/* ---- ranges ---- */

static int is_range_given(const qkv_figure_options *o) {
    return o->range[0] != 0 || o->range[1] != 0;
}

/* What has values on both sides of 0. */
static int is_signed(const qkv_figure_options *o) {
    return o->diff || o->show == QKV_SHOW_SCORES;
}

static int check_range(const qkv_figure_options *o, qkv_error *err) {
    const double low = o->range[0], high = o->range[1];
    if (!is_range_given(o)) return QKV_OK;
    if (!isfinite(low) || !isfinite(high) || low >= high) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`range` %g to %g is empty: low must be below high",
                        low, high);
    }
    if (is_signed(o) && low != -high) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`range` of %s must be the same to both sides, e.g. -1,1",
                        o->diff ? "differences" : "scores");
    }
    if (o->auto_range) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`auto_range` and `range` exclude each other");
    }
    if (o->scale == QKV_SCALE_LOG && low < 0) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`scale` log cannot show values below 0");
    }
    return QKV_OK;
}

static int check_numbers(const qkv_figure_options *o, qkv_error *err) {
    if (o->skip_keys < 0) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`skip_keys` cannot be negative");
    }
    if (o->panel_size != 0 && o->width != 0) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`panel_size` and `width` exclude each other: panels follow the width");
    }
    const study_print print = {o->text, o->font, o->width, o->hide_notes, o->font_size};
    const int status = qkv_print_check(&print, err);
    return status == QKV_OK ? check_range(o, err) : status;
}

/* ---- what excludes each other ---- */

static int check_pairs(const qkv_figure_options *o, qkv_error *err) {
    if (o->diff && o->baseline) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`diff` and `baseline` exclude each other: differences are taken from the "
                        "baseline");
    }
    if (is_signed(o) && o->scale == QKV_SCALE_LOG) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`scale` log cannot show %s, they may be negative",
                        o->diff ? "differences" : "scores");
    }
    if (is_signed(o) && o->colormap > QKV_COLORMAP_COOLWARM) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`colormap` %s cannot show %s, it has no middle for 0: use coolwarm",
                        qkv_colormap_name(o->colormap), o->diff ? "differences" : "scores");
    }
    if (o->masked && o->show == QKV_SHOW_SCORES) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`masked` is about weights: scores are what there is before the mask");
    }
    if (o->always_linear && o->scale != QKV_SCALE_LINEAR) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`always_linear` excludes another `scale`");
    }
    if (o->sink_column && o->show == QKV_SHOW_SCORES) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`sink_column` belongs to the pattern; scores have no sink");
    }
    if (o->gamma > 0 && o->scale != QKV_SCALE_POWER) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`gamma` is the exponent of `scale` power, which is not given");
    }
    if (o->report && o->show == QKV_SHOW_SCORES) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`report` is about attention weights: leave out `show` scores");
    }
    return QKV_OK;
}

int qkv_figure_read_options(qkv_figure_options *to, qkv_figure_kind kind,
                            const qkv_figure_options *given, qkv_error *err) {
    *to = (qkv_figure_options)QKV_FIGURE_OPTIONS_INIT;
    if ((unsigned)kind >= QKV_FIGURE_KINDS) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no such kind of figure");
    }
    int status = qkv_sized_read(to, sizeof *to, given, "qkv_figure_options", err);
    if (status == QKV_OK) status = check_kind(to, kind, err);
    if (status == QKV_OK) status = qkv_fields_check(&qkv_figure_table, to, err);
    if (status == QKV_OK) status = check_pairs(to, err);
    if (status == QKV_OK) status = check_numbers(to, err);
    return status == QKV_OK ? check_lists(to, err) : status;
}

int qkv_figure_options_check(qkv_figure_kind kind, const qkv_figure_options *options,
                             qkv_error *err) {
    qkv_figure_options read;
    return qkv_figure_read_options(&read, kind, options, err);
}
