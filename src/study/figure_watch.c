/*
 * Computes figures whose panels are put together of many heads or layers. Rows of the patterns go
 * into the panels while they are computed, so that no whole map is kept: memory is that of what is
 * drawn, whatever the length of the prompt.
 *
 * Rows come from several threads at once, but of one head from one at a time. So every head has
 * numbers of its own (a "sheet") for the baseline and for the variant, and panels are filled when the
 * run is over. A head that the edits cannot change sends no rows of the variant: its sheet of the
 * baseline stands for both.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "run/run.h"
#include "study/figure.h"

/* The numbers of all heads: of what is drawn, or of whole maps for a page. */
typedef struct sheet_set {
    size_t rows, cols; /* of a sheet */
    size_t skip;       /* first keys that are left out */
    size_t step;       /* positions of a cell; 0: as many as fill rows and cols evenly */
    int differs;       /* the variant's are differences from the baseline */
    float *at[2];      /* of the baseline, and of the variant where there is one; NULL: no set */
} sheet_set;

typedef struct watch {
    qkv_figure *fig;
    size_t n_tokens, query;      /* query: of the figure rows */
    size_t n_sheets;             /* layers x heads that are watched */
    int32_t *layer_at, *head_at; /* their numbers among those; -1: not watched */
    sheet_set drawn, live;       /* live: for a page */
    unsigned char *came;         /* per sheet: rows of the variant were sent */
} watch;

/* ---- which layers and heads ---- */

static int list_places(figure_places *shown, const uint8_t *layers, const uint8_t *heads,
                       qkv_error *err) {
    shown->layers = qkv_calloc((size_t)shown->all_layers, sizeof *shown->layers);
    shown->heads = qkv_calloc((size_t)shown->all_heads, sizeof *shown->heads);
    if (!shown->layers || !shown->heads) return qkv_fail_memory(err);
    for (int32_t l = 0; l < shown->all_layers; l++) {
        if (layers[l]) shown->layers[shown->n_layers++] = l;
    }
    for (int32_t h = 0; h < shown->all_heads; h++) {
        if (heads[h]) shown->heads[shown->n_heads++] = h;
    }
    return QKV_OK;
}

/* "pattern@LAYERS.hHEADS"; freed with free. */
static char *watched_text(const qkv_figure *fig) {
    const qkv_figure_options *o = &fig->options;
    char layer[16], head[16];
    snprintf(layer, sizeof layer, "%d", (int)o->layer);
    snprintf(head, sizeof head, "%d", (int)o->head);
    return qkv_figure_printf("pattern@%s.h%s",
                             o->layers              ? o->layers
                             : o->layer == QKV_AUTO ? "*"
                                                    : layer,
                             o->heads              ? o->heads
                             : o->head == QKV_AUTO ? "*"
                                                   : head);
}

/* The list is the caller's; that it becomes part of a capture is not. */
static int name_list(const char *name, const char *list, const char *what, int status,
                     qkv_error *err) {
    char prefix[sizeof err->message], rest[sizeof err->message];
    if (status == QKV_OK || !err || !list) return status;
    const int length = snprintf(prefix, sizeof prefix, "capture '%s': ", what);
    if (strncmp(err->message, prefix, (size_t)length) != 0) return status;
    snprintf(rest, sizeof rest, "%s", err->message + length);
    return qkv_fail(err, status, "`%s` %s: %s", name, list, rest);
}

int qkv_figure_select(qkv_figure *fig, const qkv_model *model, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(model);
    const qkv_own_prompt *prompt = &fig->prompts.items[0];
    figure_places *shown = &fig->shown;
    shown->all_layers = info->n_layer;
    shown->all_heads = info->n_head;
    uint8_t *layers = qkv_calloc((size_t)info->n_layer, 1);
    uint8_t *heads = qkv_calloc((size_t)info->n_head, 1);
    char *what = watched_text(fig);
    qkv_plan *plan = NULL;
    int status = layers && heads && what ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) {
        status = qkv_plan_new(&plan, model, prompt->tokens, prompt->n_tokens, err);
    }
    if (status == QKV_OK) {
        status = qkv_plan_select(plan, what, layers, heads, err);
        status = name_list("layers", fig->options.layers, what, status, err);
        status = name_list("head", fig->options.heads, what, status, err);
    }
    if (status == QKV_OK) status = list_places(shown, layers, heads, err);
    fig->layer = shown->n_layers == 1 ? shown->layers[0] : -1;
    fig->head = fig->options.head;
    fig->sink = -1;
    qkv_plan_free(plan);
    free(what);
    free(layers);
    free(heads);
    return status;
}

/* ---- during a run ---- */

static float *sheet_of(const sheet_set *set, size_t variant, size_t sheet) {
    return set->at[variant] + sheet * set->rows * set->cols;
}

static size_t sheet_index(const watch *w, int32_t layer, int32_t head) {
    return (size_t)w->layer_at[layer] * w->fig->shown.n_heads + (size_t)w->head_at[head];
}

/* Keeps what lies farthest from 0. */
static void pool(float *cell, float value) {
    if (fabsf(value) > fabsf(*cell)) *cell = value;
}

/* The cell of a pooled axis, of `side` cells for n positions. */
static size_t cell_of(const sheet_set *set, size_t position, size_t side, size_t n) {
    return set->step ? position / set->step : position * side / n;
}

/* One query's weights. With `base` the differences from it. */
static void take_row(const watch *w, const sheet_set *set, float *sheet, size_t query,
                     const float *row, const float *base, size_t n_keys) {
    const size_t skip = set->skip, n_shown = w->n_tokens - skip;
    size_t at = 0;
    if (w->fig->kind != QKV_FIGURE_ROWS) at = cell_of(set, query, set->rows, w->n_tokens);
    for (size_t k = skip; k < n_keys; k++) {
        float *cell = &sheet[at * set->cols + cell_of(set, k - skip, set->cols, n_shown)];
        pool(cell, base ? row[k] - base[k] : row[k]);
    }
}

static void take_block(const watch *w, const sheet_set *set, const qkv_rows *rows, size_t sheet) {
    const size_t n_keys = (size_t)rows->n_keys;
    const int differs = rows->variant && set->differs;
    if (!set->at[rows->variant]) return;
    for (int64_t r = 0; r < rows->n_rows; r++) {
        const size_t query = (size_t)(rows->first_row + r), at = (size_t)r * n_keys;
        if (w->fig->kind == QKV_FIGURE_ROWS && query != w->query) continue;
        take_row(w, set, sheet_of(set, rows->variant, sheet), query, rows->data + at,
                 differs ? rows->baseline + at : NULL, n_keys);
    }
}

static void take_rows(void *user, const qkv_rows *rows) {
    const watch *w = user;
    if (rows->variant > 1 || w->layer_at[rows->layer] < 0 || w->head_at[rows->head] < 0) return;
    const size_t sheet = sheet_index(w, rows->layer, rows->head);
    if (rows->variant) w->came[sheet] = 1;
    take_block(w, &w->drawn, rows, sheet);
    take_block(w, &w->live, rows, sheet);
}

/* ---- before and after ---- */

static void number_places(int32_t *at, int32_t all, const int32_t *list, size_t n) {
    for (int32_t i = 0; i < all; i++) at[i] = -1;
    for (size_t i = 0; i < n; i++) at[list[i]] = (int32_t)i;
}

static int prepare_set(const watch *w, sheet_set *set, int has_edits, qkv_error *err) {
    const size_t n_keys = w->n_tokens - set->skip;
    const int is_heads = w->fig->kind != QKV_FIGURE_ROWS;
    set->rows = is_heads ? qkv_figure_heads_side(w->fig, w->n_tokens) : 1;
    set->cols = is_heads ? qkv_figure_heads_side(w->fig, n_keys) : n_keys;
    if (set == &w->live && is_heads) {
        set->step = (w->n_tokens + set->rows - 1) / set->rows;
        set->rows = set->cols = (w->n_tokens + set->step - 1) / set->step;
    }
    for (int v = 0; v <= has_edits; v++) {
        set->at[v] = qkv_calloc(w->n_sheets * set->rows * set->cols, sizeof *set->at[v]);
        if (!set->at[v]) return qkv_fail_memory(err);
    }
    return QKV_OK;
}

static int prepare(watch *w, qkv_figure *fig, size_t prompt, int has_edits, qkv_error *err) {
    const figure_places *shown = &fig->shown;
    *w = (watch){.fig = fig,
                 .n_tokens = fig->prompts.items[prompt].n_tokens,
                 .query = qkv_figure_query(fig, prompt),
                 .n_sheets = shown->n_layers * shown->n_heads};
    w->drawn.skip = (size_t)fig->options.skip_keys;
    w->drawn.differs = fig->options.diff;
    w->layer_at = qkv_calloc((size_t)shown->all_layers, sizeof *w->layer_at);
    w->head_at = qkv_calloc((size_t)shown->all_heads, sizeof *w->head_at);
    w->came = qkv_calloc(w->n_sheets, 1);
    if (!w->layer_at || !w->head_at || !w->came) return qkv_fail_memory(err);
    number_places(w->layer_at, shown->all_layers, shown->layers, shown->n_layers);
    number_places(w->head_at, shown->all_heads, shown->heads, shown->n_heads);
    const int status = prepare_set(w, &w->drawn, has_edits, err);
    if (status != QKV_OK || !fig->scores) return status;
    /* A page counts tokens by the cell. */
    return prepare_set(w, &w->live, has_edits, err);
}

static void release(watch *w) {
    free(w->layer_at);
    free(w->head_at);
    free(w->came);
    for (int v = 0; v < 2; v++) {
        free(w->drawn.at[v]);
        free(w->live.at[v]);
    }
}

/* What a head shows with or without the edits; NULL: no difference anywhere. */
static const float *sheet_for(const watch *w, const sheet_set *set, int edited, size_t sheet) {
    if (!edited) return sheet_of(set, 0, sheet);
    if (w->came[sheet]) return sheet_of(set, 1, sheet);
    return set->differs ? NULL : sheet_of(set, 0, sheet);
}

/* The heads of a layer become one row, their mean. */
static void fill_mean(const watch *w, const sheet_set *set, int edited, size_t layer, float *row) {
    const size_t n_heads = w->fig->shown.n_heads;
    for (size_t k = 0; k < set->cols; k++) {
        double sum = 0;
        for (size_t h = 0; h < n_heads; h++) {
            const float *sheet = sheet_for(w, set, edited, layer * n_heads + h);
            if (sheet) sum += (double)sheet[k];
        }
        row[k] = (float)(sum / (double)n_heads);
    }
}

/* Sheets of one panel. */
static size_t count_sheets(const watch *w) {
    if (w->fig->kind != QKV_FIGURE_ROWS) return 1;
    return w->fig->options.layer == QKV_AUTO ? w->fig->shown.n_layers : w->n_sheets;
}

/* The numbers of a panel; NULL when memory is short. */
static float *fill_panel(const watch *w, const sheet_set *set, const figure_cell *cell,
                         int edited) {
    const int is_heads = w->fig->kind != QKV_FIGURE_ROWS;
    const int averaged = !is_heads && w->fig->options.layer == QKV_AUTO;
    const size_t first = is_heads ? sheet_index(w, cell->layer, cell->head) : 0;
    const size_t count = count_sheets(w), n = set->rows * set->cols;
    float *values = qkv_calloc(count * n, sizeof *values);
    for (size_t i = 0; values && i < count; i++) {
        const float *sheet = averaged ? NULL : sheet_for(w, set, edited, first + i);
        if (averaged) fill_mean(w, set, edited, i, values + i * n);
        if (sheet) memcpy(values + i * n, sheet, n * sizeof *values);
    }
    return values;
}

static int fill_cell(const watch *w, figure_cell *cell, qkv_error *err) {
    const int edited = cell->edits[0] != '\0';
    cell->n_rows = count_sheets(w) * w->drawn.rows;
    cell->n_cols = w->drawn.cols;
    cell->values = fill_panel(w, &w->drawn, cell, edited);
    if (!cell->values) return qkv_fail_memory(err);
    if (!w->live.at[0]) return QKV_OK;
    cell->map_rows = count_sheets(w) * w->live.rows;
    cell->map_cols = w->live.cols;
    cell->map_step = w->live.step ? w->live.step : 1;
    cell->before = fill_panel(w, &w->live, cell, 0);
    cell->pattern = fill_panel(w, &w->live, cell, edited);
    return cell->before && cell->pattern ? QKV_OK : qkv_fail_memory(err);
}

static int make_plan(const qkv_figure *fig, const qkv_model *model, size_t prompt, int has_edits,
                     qkv_plan **plan, qkv_error *err) {
    const qkv_own_prompt *input = &fig->prompts.items[prompt];
    char *what = watched_text(fig);
    int status = what ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) status = qkv_plan_new(plan, model, input->tokens, input->n_tokens, err);
    if (status == QKV_OK && has_edits) {
        status = qkv_plan_add_variant(*plan, fig->options.variant, NULL, err);
    }
    if (status == QKV_OK) status = qkv_plan_observe(*plan, what, err);
    free(what);
    return status;
}

int qkv_figure_watch(qkv_figure *fig, qkv_session *session, size_t prompt, qkv_error *err) {
    const int has_edits = fig->options.variant && fig->options.variant[0];
    watch w;
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    qkv_observer observer = QKV_OBSERVER_INIT;
    observer.user = &w;
    observer.rows = take_rows;
    observer.compare = fig->options.diff != 0;
    int status = prepare(&w, fig, prompt, has_edits, err);
    if (status == QKV_OK) {
        status = make_plan(fig, qkv_session_model(session), prompt, has_edits, &plan, err);
    }
    if (status == QKV_OK) status = qkv_session_observe(session, &result, plan, &observer, err);
    for (size_t i = 0; i < fig->rows * fig->cols && status == QKV_OK; i++) {
        figure_cell *cell = &fig->cells[i];
        if (cell->prompt != prompt) continue;
        cell->variant = cell->edits[0] != '\0';
        status = fill_cell(&w, cell, err);
    }
    if (status == QKV_OK) status = qkv_figure_warn_unchanged(fig, result, prompt, err);
    qkv_result_free(result);
    qkv_plan_free(plan);
    release(&w);
    return status;
}
