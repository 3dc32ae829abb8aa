/*
 * What an edit selects is gathered into an array of its own, in the order of captures, handed to the
 * function, and scattered back. So a function sees neither how the graph lays a tensor out nor how
 * variants are batched, and cannot write beyond its selection.
 */
#include "run/ops/edit_apply.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sized.h"
#include "run/notation/notation_cursor.h"
#include "run/plan/plan.h"
#include "run/run.h"

struct qkv_custom {
    atomic_size_t n_owners;
    char *name;
    qkv_custom_edit how;
};

void qkv_custom_free(qkv_custom *custom) {
    if (!custom || atomic_fetch_sub(&custom->n_owners, 1) != 1) return;
    if (custom->how.release) custom->how.release(custom->how.user);
    free(custom->name);
    free(custom);
}

/* ---- plans ---- */

static int check_custom(const qkv_plan *plan, const qkv_custom_edit *how, qkv_error *err) {
    if (!how->name || !how->apply)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a custom edit needs a name and a function");
    if (!*how->name || strpbrk(how->name, "+=: \t\n"))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "'%s' cannot name a function: no spaces, '+', '=' or ':'", how->name);
    for (size_t i = 0; i < plan->n_customs; i++) {
        if (strcmp(plan->customs[i]->name, how->name) == 0)
            return qkv_fail(err, QKV_ERR_ARGUMENT, "there are two functions named '%s'", how->name);
    }
    return QKV_OK;
}

int qkv_plan_add_custom(qkv_plan *plan, const qkv_custom_edit *custom, qkv_error *err) {
    QKV_NEED(err, plan);
    QKV_NEED(err, custom);
    qkv_custom_edit how = QKV_CUSTOM_EDIT_INIT;
    int status = qkv_sized_read(&how, sizeof how, custom, "qkv_custom_edit", err);
    if (status == QKV_OK) status = check_custom(plan, &how, err);
    if (status != QKV_OK) return status;
    qkv_custom *own = qkv_calloc(1, sizeof *own);
    if (own) own->name = qkv_strdup(how.name);
    if (!own || !own->name ||
        !QKV_PUSH(plan->customs, plan->customs_capacity, plan->n_customs, own)) {
        if (own) free(own->name);
        free(own);
        return qkv_fail_memory(err);
    }
    own->how = how;
    own->n_owners = 1;
    return QKV_OK;
}

int qkv_plan_add_customs(qkv_plan *plan, const qkv_custom_edit *customs, size_t n, qkv_error *err) {
    QKV_NEED(err, plan);
    if (n) QKV_NEED(err, customs);
    int status = QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        qkv_custom_edit how = QKV_CUSTOM_EDIT_INIT;
        status = qkv_sized_read_item(&how, sizeof how, customs, i, "qkv_custom_edit", err);
        if (status == QKV_OK && how.release)
            status = qkv_fail(err, QKV_ERR_ARGUMENT, "function %zu is borrowed: no `release`", i);
        how.size = sizeof how;
        if (status == QKV_OK) status = qkv_plan_add_custom(plan, &how, err);
    }
    return status;
}

int qkv_plan_share_customs(qkv_plan *plan, const qkv_plan *from, qkv_error *err) {
    for (size_t i = 0; i < from->n_customs; i++) {
        if (!QKV_PUSH(plan->customs, plan->customs_capacity, plan->n_customs, from->customs[i]))
            return qkv_fail_memory(err);
        atomic_fetch_add(&from->customs[i]->n_owners, 1);
    }
    return QKV_OK;
}

const char *qkv_plan_custom(const qkv_plan *plan, size_t index) {
    return plan && index < plan->n_customs ? plan->customs[index]->name : NULL;
}

/* ---- what is selected ---- */

/* Heads, rows and columns that an edit selects of a view, by their numbers in it. */
typedef struct selection {
    const qkv_edit *edit;
    const qkv_view *view;
    int is_map;
    int32_t copies;       /* consecutive heads of the view that are one head to the edit */
    int32_t *heads;       /* numbers as the edit counts */
    int32_t *places;      /* which of the view's they are; of copies, the first */
    int64_t *rows, *cols; /* columns of a map; else the places of channels, in their order */
    int64_t *channels;    /* the numbers of those */
    int32_t n_heads;
    int64_t n_rows, n_cols;
} selection;

static int is_in(const uint8_t *map, int64_t i) {
    return !map || map[i];
}

/* In the order of captures, whatever the graph's is. */
static int list_channels(selection *s) {
    s->channels = qkv_calloc((size_t)s->view->width, sizeof *s->channels);
    for (int64_t i = 0; s->channels && i < s->view->width; i++) {
        if (!is_in(s->edit->where.channels, i)) continue;
        s->channels[s->n_cols] = i;
        s->cols[s->n_cols++] = qkv_view_place(s->view, i);
    }
    return s->channels != NULL;
}

static int list_selection(selection *s) {
    const qkv_view *v = s->view;
    const qkv_selector *where = &s->edit->where;
    s->is_map = qkv_site_get_axes(v->site) == QKV_AXES_MAP;
    s->copies = where->letter == 'h' ? 1 : v->group;
    s->heads = qkv_calloc((size_t)v->n_heads, sizeof *s->heads);
    s->places = qkv_calloc((size_t)v->n_heads, sizeof *s->places);
    s->rows = qkv_calloc((size_t)v->n_rows, sizeof *s->rows);
    s->cols = qkv_calloc((size_t)v->n_cols, sizeof *s->cols);
    if (!s->heads || !s->places || !s->rows || !s->cols) return 0;
    for (int32_t h = 0; h < v->n_heads; h++) {
        const int32_t number = qkv_view_head(v, h);
        if (number % s->copies || !is_in(where->heads, number / s->copies)) continue;
        s->heads[s->n_heads] = number / s->copies;
        s->places[s->n_heads++] = h;
    }
    for (int64_t t = 0; t < v->n_rows; t++) {
        if (is_in(where->rows, v->first_row + t)) s->rows[s->n_rows++] = v->first_row + t;
    }
    for (int64_t c = 0; s->is_map && c < v->n_cols; c++) {
        if (is_in(where->cols, v->first_col + c)) s->cols[s->n_cols++] = v->first_col + c;
    }
    return s->is_map || list_channels(s);
}

/* Where (row, column) of the selection is in a head of the view. */
static int64_t place_of(const selection *s, int64_t t, int64_t c) {
    const qkv_view *v = s->view;
    return (s->rows[t] - v->first_row) * v->row_stride + s->cols[c] - v->first_col;
}

static const float *source_of(const selection *s, int32_t h) {
    return s->view->src + s->places[h] * s->view->src_head_stride;
}

/* Where it is in the array that the function gets. */
static int64_t index_of(const selection *s, int32_t h, int64_t t, int64_t c) {
    if (s->is_map) return (h * s->n_rows + t) * s->n_cols + c;
    return (t * s->n_heads + h) * s->n_cols + c;
}

static void gather(const selection *s, float *values) {
    for (int32_t h = 0; h < s->n_heads; h++) {
        for (int64_t t = 0; t < s->n_rows; t++) {
            for (int64_t c = 0; c < s->n_cols; c++)
                values[index_of(s, h, t, c)] = source_of(s, h)[place_of(s, t, c)];
        }
    }
}

/* Scores that the mask hides are left alone, as by other edits. */
static void visible_columns(const selection *s, int64_t t, int64_t *first, int64_t *end) {
    const qkv_view *v = s->view;
    *first = 0;
    *end = INT64_MAX;
    if (qkv_site_is_masked(v->site))
        qkv_visible_keys(v->model, v->layer, v->first_col + v->n_cols, s->rows[t], first, end);
}

static int fail_value(const selection *s, int64_t t, float value, qkv_error *err) {
    return qkv_fail(
        err, QKV_ERR_NUMERIC, "edit '%s', layer %d: its function gives %s, first at token %lld",
        s->edit->text, s->view->layer, isnan(value) ? "NaN" : "Inf", (long long)s->rows[t]);
}

static int scatter_row(const selection *s, const float *values, int32_t h, int64_t t,
                       uint64_t *changed, qkv_error *err) {
    int64_t first, end;
    visible_columns(s, t, &first, &end);
    for (int64_t c = 0; c < s->n_cols; c++) {
        if (s->is_map && (s->cols[c] < first || s->cols[c] >= end)) continue;
        const int64_t at = place_of(s, t, c);
        const float value = values[index_of(s, h, t, c)], before = source_of(s, h)[at];
        if (!isfinite(value) && isfinite(before)) return fail_value(s, t, value, err);
        *changed += !(value == before);
        for (int32_t i = s->places[h]; i < s->places[h] + s->copies; i++)
            s->view->dst[at + i * s->view->head_stride] = value;
    }
    return QKV_OK;
}

static int scatter(const selection *s, const float *values, uint64_t *changed, qkv_error *err) {
    int status = QKV_OK;
    for (int64_t t = 0; t < s->n_rows; t++) {
        for (int32_t h = 0; h < s->n_heads && status == QKV_OK; h++)
            status = scatter_row(s, values, h, t, changed, err);
    }
    return status;
}

/* ---- calling ---- */

static qkv_custom_call call_of(const selection *s, float *values) {
    const qkv_edit *edit = s->edit;
    const qkv_site_axes axes = qkv_site_get_axes(edit->where.site);
    const int has_heads = qkv_site_has_heads(edit->where.site);
    qkv_custom_call call = {.size = sizeof call,
                            .name = edit->custom->name,
                            .edit = edit->text,
                            .site = edit->where.site,
                            .layer = qkv_site_has_layer(edit->where.site) ? s->view->layer : -1,
                            .values = values,
                            .n_values = s->n_heads * s->n_rows * s->n_cols,
                            .n_dims = has_heads ? 3 : 2,
                            .tokens = s->rows,
                            .n_tokens = s->n_rows,
                            .keys = s->is_map ? s->cols : NULL,
                            .n_keys = s->is_map ? s->n_cols : 0,
                            .channels = s->channels,
                            .n_channels = s->is_map ? 0 : s->n_cols};
    if (has_heads) {
        call.heads = s->heads;
        call.n_heads = s->n_heads;
        call.head_kind = edit->where.letter == 'h' || axes != QKV_AXES_KEYVALUE ? 'h' : 'g';
    }
    const int64_t map[] = {s->n_heads, s->n_rows, s->n_cols};
    const int64_t heads[] = {s->n_rows, s->n_heads, s->n_cols};
    const int64_t flat[] = {s->n_rows, s->n_cols, 0};
    memcpy(call.shape, s->is_map ? map : has_heads ? heads : flat, sizeof call.shape);
    return call;
}

static int call_function(const selection *s, uint64_t *changed, qkv_error *err) {
    const qkv_custom_edit *how = &s->edit->custom->how;
    const size_t n = (size_t)(s->n_heads * s->n_rows * s->n_cols);
    if (!n) return QKV_OK; /* of a text that grows: none of the new tokens */
    float *values = qkv_calloc(n, sizeof *values);
    if (!values) return qkv_fail_memory(err);
    gather(s, values);
    const qkv_custom_call call = call_of(s, values);
    qkv_error own = {0};
    int status = how->apply(how->user, &call, &own);
    if (status != QKV_OK)
        status = qkv_fail(err, status < 0 ? status : QKV_ERR_BACKEND, "edit '%s': %s",
                          s->edit->text, own.message[0] ? own.message : "its function failed");
    if (status == QKV_OK) status = scatter(s, values, changed, err);
    free(values);
    return status;
}

int qkv_custom_apply(const qkv_edit *edit, const qkv_view *view, uint64_t *changed,
                     qkv_error *err) {
    selection s = {.edit = edit, .view = view};
    *changed = 0;
    int status = list_selection(&s) ? call_function(&s, changed, err) : qkv_fail_memory(err);
    free(s.heads);
    free(s.places);
    free(s.rows);
    free(s.cols);
    free(s.channels);
    return status;
}

/* ---- edits ---- */

static int parse_custom(qkv_cursor *c, qkv_edit *edit) {
    const qkv_notation *notation = c->notation;
    for (size_t i = 0; i < notation->n_customs; i++) {
        if (strcmp(c->at, notation->customs[i]->name) != 0) continue;
        edit->custom = notation->customs[i];
        c->at += strlen(c->at);
        return QKV_OK;
    }
    return qkv_cursor_fail(
        c, QKV_ERR_PLAN,
        "no function named '%s' is registered here; custom is for programs and Python, "
        "in runs, measurements, next tokens and generation",
        c->at);
}

/* Does a split at one site show in the heads of another? */
static int splits_before(const qkv_hparams *hp, qkv_site site, qkv_site other) {
    return site != other && qkv_site_get_axes(site) == QKV_AXES_KEYVALUE &&
           qkv_site_reaches(hp, other, 0, site, 0);
}

/* What query heads see of a key/value head can differ after an edit of k, and then there is no such head
 * that a function could be given. */
static int check_custom_split(const qkv_plan *plan, qkv_variant *variant, qkv_error *err) {
    const qkv_hparams *hp = &plan->model->hp;
    for (size_t i = 0; i < variant->n_edits * variant->n_edits; i++) {
        const qkv_edit *edit = &variant->edits[i / variant->n_edits];
        const qkv_edit *other = &variant->edits[i % variant->n_edits];
        if (!(edit->flags & QKV_EDIT_CALLS) || edit->where.letter == 'h' ||
            !splits_before(hp, edit->where.site, other->where.site))
            continue;
        for (int32_t il = 0; il < hp->n_layer; il++) {
            if (!edit->where.layers[il] || !other->where.layers[il] ||
                !qkv_selector_splits(&other->where, hp, il))
                continue;
            return qkv_fail(err, QKV_ERR_PLAN,
                            "edit '%s' splits a key/value head between its query heads; the "
                            "function of '%s' must be given query heads: %s@%d.h*",
                            other->text, edit->text, qkv_site_name(edit->where.site), il);
        }
    }
    return QKV_OK;
}

static const char *needs_text(const qkv_edit *edit) {
    if (qkv_site_get_axes(edit->where.site) == QKV_AXES_MAP)
        return "gives a function whole maps, which grow";
    if (!edit->custom->how.by_token)
        return "gives a function all tokens, and it does not say that it works `by_token`";
    return NULL;
}

const qkv_operation qkv_operation_custom = {
    .read = parse_custom, .check = check_custom_split, .needs_text = needs_text};
