/* Figures: made step by step from their options, asked for what they hold, freed. */
#include "study/figure.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/sized.h"

const figure_part qkv_figure_parts[FIGURE_PARTS] = {{"q", "Query"}, {"k", "Key"}, {"v", "Value"}};

const char *qkv_figure_part_name(const char *site) {
    for (int i = 0; site && i < FIGURE_PARTS; i++) {
        if (strcmp(site, qkv_figure_parts[i].site) == 0) return qkv_figure_parts[i].name;
    }
    return NULL;
}

/* ---- inputs ---- */

/* What depends on the length of a prompt. */
static int check_prompt(const qkv_figure_options *o, size_t n_tokens, qkv_error *err) {
    const int64_t n = (int64_t)n_tokens;
    if (o->skip_keys >= n) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`skip_keys` %lld leaves nothing of a prompt of %zu tokens",
                        (long long)o->skip_keys, n_tokens);
    }
    if (o->query < -n || o->query >= n) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`query` %lld is out of range: the prompt has tokens 0 to %zu",
                        (long long)o->query, n_tokens - 1);
    }
    return QKV_OK;
}

static int take_set(qkv_figure *fig, const qkv_model *model, qkv_error *err) {
    const qkv_figure_options *o = &fig->options;
    const size_t n = o->n_set_prompts;
    if (n == 0) return QKV_OK;
    int status = qkv_prompts_take(&fig->set, o->set_prompts, n, model, err);
    if (status == QKV_OK) status = qkv_edit_data_new(&fig->data, err);
    if (status != QKV_OK) return status;
    const int32_t **tokens = qkv_calloc(n, sizeof *tokens);
    size_t *lengths = qkv_calloc(n, sizeof *lengths);
    for (size_t i = 0; tokens && lengths && i < n; i++) {
        tokens[i] = fig->set.items[i].tokens;
        lengths[i] = fig->set.items[i].n_tokens;
    }
    status = tokens && lengths ? qkv_edit_data_set_prompts(fig->data, tokens, lengths, n, err)
                               : qkv_fail_memory(err);
    free((void *)tokens);
    free(lengths);
    return status;
}

static int take_prompts(qkv_figure *fig, const qkv_model *model, qkv_error *err) {
    const qkv_figure_options *o = &fig->options;
    const size_t own = fig->kind == QKV_FIGURE_MEAN ? 3 : 1;
    int status = qkv_prompts_take(&fig->prompts, o->n_prompts ? o->prompts : NULL,
                                  o->n_prompts ? o->n_prompts : own, model, err);
    for (size_t i = 0; i < fig->prompts.n && status == QKV_OK; i++) {
        status = check_prompt(o, fig->prompts.items[i].n_tokens, err);
    }
    if (status != QKV_OK) return status;
    status = qkv_prompts_take(&fig->sources, o->sources, o->n_sources, model, err);
    return status == QKV_OK ? take_set(fig, model, err) : status;
}

static int take_inputs(qkv_figure *fig, const qkv_model *model, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(model);
    const qkv_figure_options *o = &fig->options;
    fig->site = o->show == QKV_SHOW_SCORES ? QKV_SITE_SCORES : QKV_SITE_PATTERN;
    fig->has_sink = info->has_sink;
    fig->has_logits = info->has_logits;
    if (o->sink_column && !fig->has_sink) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`sink_column`: %s has no learned sinks; its rows sum to 1", info->path);
    }
    fig->own_title = qkv_strdup(o->title);
    fig->own_font = qkv_strdup(o->font);
    fig->own_bar_label = qkv_strdup(o->bar_label);
    if ((o->title && !fig->own_title) || (o->font && !fig->own_font) ||
        (o->bar_label && !fig->own_bar_label))
        return qkv_fail_memory(err);
    return take_prompts(fig, model, err);
}

static int choose_places(qkv_figure *fig, qkv_session *session, qkv_error *err) {
    const qkv_own_prompt *prompt = &fig->prompts.items[0];
    const qkv_model *model = qkv_session_model(session);
    qkv_head_choice choice = QKV_HEAD_CHOICE_INIT;
    int status = qkv_resolve_head(model, &fig->options.layer, &fig->options.head, err);
    if (status != QKV_OK) return status;
    if (qkv_figure_is_watched(fig)) return qkv_figure_select(fig, model, err);
    status = qkv_choose_head(session, prompt->tokens, prompt->n_tokens, fig->options.layer,
                             fig->options.head, &choice, err);
    fig->layer = choice.layer;
    fig->head = choice.head;
    fig->sink = choice.sink;
    return status;
}

/* ---- making ---- */

static int set_cells(qkv_figure *fig, qkv_error *err) {
    static int (*const cells[QKV_FIGURE_KINDS])(qkv_figure *, qkv_error *) = {
        [QKV_FIGURE_MODIFY] = qkv_figure_modify_cells,
        [QKV_FIGURE_MEAN] = qkv_figure_mean_cells,
        [QKV_FIGURE_GRID] = qkv_figure_grid_cells,
        [QKV_FIGURE_HEADS] = qkv_figure_heads_cells,
        [QKV_FIGURE_ROWS] = qkv_figure_rows_cells,
        [QKV_FIGURE_PATTERN] = qkv_figure_pattern_cells,
    };
    return cells[fig->kind](fig, err);
}

/* Titles that name tokens, which the run has checked by then. */
static int set_titles(qkv_figure *fig, qkv_error *err) {
    return fig->kind == QKV_FIGURE_ROWS ? qkv_figure_rows_titles(fig, err) : QKV_OK;
}

/* What belongs to the caller is not looked at again. */
static void forget_lists(qkv_figure_options *o, const qkv_figure *fig) {
    o->prompts = o->sources = o->set_prompts = NULL;
    o->rows = o->cols = NULL;
    o->eps = o->layers = o->variant = NULL;
    if (o->heads) o->heads = ""; /* only that they were given */
    o->command = NULL;
    o->title = fig->own_title;
    o->font = fig->own_font;
    o->bar_label = fig->own_bar_label;
}

/* What the first prompt takes of a pass when the pass that chose the head has left its trunk. */
static const double after_choice = 0.1;

static int compute(qkv_figure *fig, qkv_session *session, qkv_error *err) {
    const qkv_figure_options *o = &fig->options;
    const int chooses =
        !qkv_figure_is_watched(fig) && (o->layer == QKV_AUTO || o->head == QKV_AUTO);
    const double n = (double)fig->prompts.n, passes = chooses ? n - 1 + after_choice : n;
    int status = qkv_session_begin_work(session, "parts", chooses + passes, err);
    if (status != QKV_OK) return status;
    status = qkv_session_reach(session, 0, chooses, err);
    if (status == QKV_OK) status = choose_places(fig, session, err);
    if (status == QKV_OK) status = set_cells(fig, err);
    if (status == QKV_OK) status = qkv_session_reach(session, chooses, passes, err);
    if (status == QKV_OK) status = qkv_figure_compute(fig, session, err);
    return qkv_session_end_work(session, status);
}

static int fill(qkv_figure *fig, qkv_session *session, qkv_error *err) {
    const qkv_model *model = qkv_session_model(session);
    int status = take_inputs(fig, model, err);
    if (status == QKV_OK) status = compute(fig, session, err);
    if (status == QKV_OK) {
        qkv_figure_choose_look(fig, model);
        qkv_figure_choose_range(fig);
    }
    if (status == QKV_OK) status = qkv_figure_make_labels(fig, model, err);
    if (status == QKV_OK) status = set_titles(fig, err);
    if (status == QKV_OK) status = qkv_figure_make_notes(fig, session, err);
    forget_lists(&fig->options, fig);
    if (status == QKV_OK && fig->options.report) {
        status = qkv_report_new(&fig->report, fig, model, err);
    }
    return status;
}

int qkv_figure_make(qkv_figure **out, qkv_session *session, qkv_figure_kind kind,
                    const qkv_figure_options *options, qkv_error *err) {
    if (!out) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no place for the figure");
    *out = NULL;
    if (!session) return qkv_fail(err, QKV_ERR_ARGUMENT, "a figure needs a session");
    qkv_figure_options read;
    int status = qkv_figure_read_options(&read, kind, options, err);
    if (status != QKV_OK) return status;
    qkv_figure *fig = qkv_calloc(1, sizeof *fig);
    if (!fig) return qkv_fail_memory(err);
    fig->kind = kind;
    fig->options = read;
    status = fill(fig, session, err);
    if (status != QKV_OK) {
        qkv_figure_free(fig);
        return status;
    }
    *out = fig;
    return QKV_OK;
}

int qkv_figure_is_watched(const qkv_figure *fig) {
    return fig->kind == QKV_FIGURE_HEADS || fig->kind == QKV_FIGURE_ROWS || fig->options.heads;
}

const char *qkv_figure_kind_name(qkv_figure_kind kind) {
    static const char *const names[QKV_FIGURE_KINDS] = {"modify", "mean", "grid",
                                                        "heads",  "rows", "pattern"};
    return (unsigned)kind < QKV_FIGURE_KINDS ? names[kind] : NULL;
}

static void release_cell(figure_cell *cell) {
    free(cell->edits);
    free(cell->title);
    free(cell->above);
    free(cell->side);
    free(cell->values);
    free(cell->pattern);
    free(cell->before);
    qkv_edit_factors_release(&cell->factors);
}

void qkv_figure_free(qkv_figure *fig) {
    if (!fig) return;
    qkv_report_free(fig->report);
    qkv_grid_free(fig->grid);
    for (size_t i = 0; i < fig->rows * fig->cols; i++) release_cell(&fig->cells[i]);
    free(fig->cells);
    for (size_t i = 0; i < fig->n_row_names; i++) free(fig->row_names[i]);
    free(fig->row_names);
    free(fig->shown.layers);
    free(fig->shown.heads);
    for (size_t i = 0; fig->plain && i < fig->prompts.n; i++) free(fig->plain[i]);
    free(fig->plain);
    qkv_figure_scores_free(fig->scores, fig->prompts.n);
    for (size_t i = 0; i < fig->warnings.n; i++) free(fig->warnings.items[i]);
    free(fig->warnings.items);
    qkv_own_prompts_release(&fig->prompts);
    qkv_own_prompts_release(&fig->sources);
    qkv_own_prompts_release(&fig->set);
    qkv_edit_data_free(fig->data);
    qkv_text_release(&fig->operations);
    free(fig->small_print);
    free(fig->recipe);
    free(fig->own_title);
    free(fig->own_font);
    free(fig->own_bar_label);
    free(fig);
}

/* ---- cells ---- */

/* More on one page cannot be read; 126 layers of 128 heads would be 16128. */
enum { MOST_PANELS = 4096 };

/* The first column of a block. */
static size_t block_start(const qkv_figure *fig, size_t block) {
    return block * (fig->block_cols + (fig->options.baseline != 0));
}

int qkv_figure_reserve(qkv_figure *fig, size_t rows, size_t blocks, size_t cols, qkv_error *err) {
    fig->block_cols = cols;
    cols = block_start(fig, blocks);
    if (cols > MOST_PANELS || rows > MOST_PANELS / cols) {
        return qkv_fail(
            err, QKV_ERR_ARGUMENT, "%zu x %zu panels are too many for one figure: at most %d%s",
            rows, cols, (int)MOST_PANELS,
            fig->kind == QKV_FIGURE_HEADS ? "; choose some of the layers with `layers`" : "");
    }
    fig->cells = qkv_calloc(rows * cols, sizeof *fig->cells);
    if (!fig->cells) return qkv_fail_memory(err);
    fig->rows = rows;
    fig->cols = cols;
    return QKV_OK;
}

int qkv_figure_set(qkv_figure *fig, size_t row, size_t col, figure_cell cell, qkv_error *err) {
    const size_t baselines = fig->options.baseline ? col / fig->block_cols + 1 : 0;
    if (!qkv_figure_is_watched(fig)) {
        cell.layer = fig->layer;
        cell.head = fig->head;
    }
    fig->cells[row * fig->cols + col + baselines] = cell;
    return cell.edits && cell.title ? QKV_OK : qkv_fail_memory(err);
}

int qkv_figure_set_baseline(qkv_figure *fig, size_t row, size_t block, size_t prompt, char *title,
                            qkv_error *err) {
    if (!fig->options.baseline) {
        free(title);
        return QKV_OK;
    }
    figure_cell *cell = &fig->cells[row * fig->cols + block_start(fig, block)];
    *cell = (figure_cell){.prompt = prompt,
                          .edits = qkv_strdup(""),
                          .title = title,
                          .layer = fig->layer,
                          .head = fig->head};
    return cell->edits && title ? QKV_OK : qkv_fail_memory(err);
}

/* ---- texts ---- */

char *qkv_figure_printf(const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int length = qkv_vformat(NULL, 0, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : malloc((size_t)length + 1);
    if (!text) return NULL;
    va_start(args, format);
    qkv_vformat(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

char *qkv_figure_edit(const qkv_figure *fig, const char *site, const char *operation) {
    if (!operation) return NULL;
    if (fig->options.all_heads) {
        return qkv_figure_printf("%s@%d=%s", site, (int)fig->layer, operation);
    }
    return qkv_figure_printf("%s@%d.h%d=%s", site, (int)fig->layer, (int)fig->head, operation);
}

char *qkv_figure_name_input(const qkv_figure *fig, char *label, size_t prompt) {
    if (!label || fig->prompts.n == 1) return label;
    char *title = label[0] ? qkv_figure_printf("%s (Input %zu)", label, prompt + 1)
                           : qkv_figure_printf("Input %zu", prompt + 1);
    free(label);
    return title;
}

int qkv_figure_warn(qkv_figure *fig, char *text, qkv_error *err) {
    figure_warnings *all = &fig->warnings;
    if (text && QKV_PUSH(all->items, all->capacity, all->n, text)) return QKV_OK;
    free(text);
    return qkv_fail_memory(err);
}

const char *qkv_figure_warning(const qkv_figure *fig, size_t index) {
    return fig && index < fig->warnings.n ? fig->warnings.items[index] : NULL;
}
