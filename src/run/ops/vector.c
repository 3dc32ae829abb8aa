/* Edits with a vector: add:@NAME,by=F, remove:@NAME and set:@NAME. */
#include "run/ops/edit_apply.h"

#include <string.h>

#include "base/nearest.h"
#include "run/notation/notation_cursor.h"
#include "run/plan/edit_data.h"
#include "run/site.h"

/* ---- shapes ---- */

static void put_shape(qkv_text *text, const int64_t *shape, int32_t n_dims) {
    for (int32_t i = 0; i < n_dims; i++)
        qkv_text_printf(text, "%s%lld", i ? "," : "", (long long)shape[i]);
}

/* Heads that a vector may have rows for: where query heads are named, also theirs; 1 is for all of them. */
static int is_heads(const qkv_notation *notation, const qkv_selector *where, int64_t n) {
    const int32_t layer = qkv_selector_first_layer(where, notation->hp);
    const int32_t own = qkv_site_n_heads(where->site, notation->hp, layer);
    const int32_t all = qkv_layer_shape_of(notation->hp, layer)->n_head;
    return own && (n == own || n == 1 || (where->letter == 'h' && n == all));
}

static int64_t tokens_of(const qkv_notation *notation) {
    return notation->n_prompt ? notation->n_prompt : notation->n_tokens;
}

/* Of what heads read, also [T, D]: rows of the residual stream. */
static int has_rows_of_tokens(const qkv_notation *notation, const qkv_edit *edit) {
    const qkv_vector *v = edit->vector;
    return qkv_site_is_input(edit->where.site) && v->n_dims == 2 &&
           v->shape[0] == tokens_of(notation) && v->shape[1] == notation->hp->n_embd;
}

static int is_unclear(const qkv_notation *notation, const qkv_edit *edit) {
    const int64_t rows = edit->vector->shape[0];
    return has_rows_of_tokens(notation, edit) && rows > 1 && is_heads(notation, &edit->where, rows);
}

/* Heads that the selector counts. */
static int64_t named_heads(const qkv_notation *notation, const qkv_selector *where) {
    const qkv_layer_shape *shape =
        qkv_layer_shape_of(notation->hp, qkv_selector_first_layer(where, notation->hp));
    return where->letter == 'g' ? shape->n_kv_head : shape->n_head;
}

static int64_t width_of(const qkv_notation *notation, const qkv_selector *where) {
    const int32_t layer = qkv_selector_first_layer(where, notation->hp);
    return qkv_site_width(where->site, notation->hp, layer, notation->n_tokens);
}

/* Has one of the edit's layers other numbers of heads or channels than the first? */
static int layers_differ(const qkv_notation *notation, const qkv_edit *edit) {
    const qkv_selector *where = &edit->where;
    const qkv_hparams *hp = notation->hp;
    const int32_t first = qkv_selector_first_layer(where, hp);
    for (int32_t il = first + 1; where->layers && il < hp->n_layer; il++) {
        if (where->layers[il] &&
            (qkv_site_width(where->site, hp, il, 0) != qkv_site_width(where->site, hp, first, 0) ||
             (edit->vector->n_dims > 1 &&
              qkv_site_n_heads(where->site, hp, il) != qkv_site_n_heads(where->site, hp, first))))
            return 1;
    }
    return 0;
}

/* Fits the vector to the site: how many rows it has for heads and for tokens. */
static int fit_shape(const qkv_notation *notation, qkv_edit *edit) {
    const qkv_vector *v = edit->vector;
    const int64_t width = width_of(notation, &edit->where);
    const int has_heads = qkv_site_has_heads(edit->where.site);
    int32_t n = v->n_dims - 1; /* axes before the last one */
    edit->vector_heads = 1;
    edit->vector_tokens = 0;
    if (v->shape[n] != width || is_unclear(notation, edit) || layers_differ(notation, edit))
        return 0;
    if (n && has_heads && !has_rows_of_tokens(notation, edit)) {
        if (!is_heads(notation, &edit->where, v->shape[--n])) return 0;
        edit->vector_heads = v->shape[n];
        edit->vector_heads_named = named_heads(notation, &edit->where);
    }
    if (n) {
        if (v->shape[--n] != tokens_of(notation)) return 0;
        edit->vector_tokens = v->shape[n];
    }
    return n == 0;
}

static void explain_shape(const qkv_notation *notation, const qkv_edit *edit, qkv_text *why) {
    const qkv_selector *where = &edit->where;
    const int32_t layer = qkv_selector_first_layer(where, notation->hp);
    const int32_t heads = where->letter == 'h' ? qkv_layer_shape_of(notation->hp, layer)->n_head
                                               : qkv_site_n_heads(where->site, notation->hp, layer);
    const long long width = (long long)width_of(notation, where);
    const long long tokens = (long long)tokens_of(notation);
    qkv_text_printf(why, "the vector has shape ");
    put_shape(why, edit->vector->shape, edit->vector->n_dims);
    if (is_unclear(notation, edit)) {
        qkv_text_printf(
            why,
            ", whose rows may be tokens or heads; give it as %lld,1,%lld by token, as a "
            "capture of %s.h0 has it, or as %lld,%d,%lld",
            tokens, width, qkv_site_name(where->site), tokens, heads, width);
        return;
    }
    if (layers_differ(notation, edit)) {
        qkv_text_printf(why, ", and the layers of the edit differ in the shape of their %s",
                        qkv_site_name(where->site));
        return;
    }
    qkv_text_printf(why, "; %s takes %lld", qkv_site_name(where->site), width);
    if (qkv_site_is_input(where->site))
        qkv_text_printf(why, ", or %lld,%lld by token", tokens, width);
    if (heads)
        qkv_text_printf(why, ", or %d,%lld by head, or %lld,%d,%lld by token", heads, width, tokens,
                        heads, width);
    else
        qkv_text_printf(why, ", or %lld,%lld by token", tokens, width);
}

/* ---- text ---- */

static int fail_name(const qkv_notation *notation, const char *name, size_t length, qkv_text *why) {
    const qkv_edit_data *data = notation->data;
    qkv_nearest near = qkv_nearest_of(name, length);
    for (size_t i = 0; data && i < data->n_vectors; i++)
        qkv_nearest_try(&near, data->vectors[i]->name);
    if (memchr(name, '#', length))
        qkv_text_puts(why, "vectors from files are not available here");
    else if (!data || !data->n_vectors)
        qkv_text_printf(why, "there are no vectors here; from a file they are @FILE#NAME");
    else
        qkv_text_printf(why, "there is no vector '%.*s'%s", (int)length, name,
                        qkv_nearest_hint(&near));
    return QKV_ERR_PLAN;
}

static int remember_hash(qkv_edit *edit) {
    qkv_text note = {0};
    qkv_text_printf(&note, "%s has the hash %s", edit->vector->name, edit->vector->hash);
    if (note.failed) qkv_text_release(&note);
    edit->note = note.data;
    return edit->note != NULL;
}

/* Gives the edit the vector of this name. *why receives what is wrong, to be put after the edit's text. */
static int take_vector(const qkv_notation *notation, qkv_edit *edit, const char *name,
                       size_t length, qkv_text *why) {
    if (qkv_site_get_axes(edit->where.site) == QKV_AXES_MAP) {
        qkv_text_printf(why, "%s has no channels that a vector could stand for",
                        qkv_site_name(edit->where.site));
        return QKV_ERR_PLAN;
    }
    if (edit->op == QKV_OP_REMOVE && edit->where.channels) {
        qkv_text_puts(why, "a direction is taken out of whole rows; leave out {CHANNELS}");
        return QKV_ERR_PLAN;
    }
    edit->vector = qkv_edit_data_find_vector(notation->data, name, length);
    if (!edit->vector) return fail_name(notation, name, length, why);
    if (!fit_shape(notation, edit)) {
        explain_shape(notation, edit, why);
        return QKV_ERR_PLAN;
    }
    return remember_hash(edit) ? QKV_OK : QKV_ERR_MEMORY;
}

int qkv_vector_read(qkv_cursor *c, qkv_edit *edit) {
    const char *name = c->at + 1;
    const size_t length = strcspn(name, ",");
    qkv_text why = {0};
    if (*c->at != '@')
        return qkv_cursor_fail(c, QKV_ERR_SYNTAX, "expected a vector, @FILE#NAME, not '%s'", c->at);
    int status = take_vector(c->notation, edit, name, length, &why);
    if (status != QKV_OK) qkv_cursor_fail(c, status, "%s", why.data ? why.data : "out of memory");
    qkv_text_release(&why);
    if (status != QKV_OK) return status;
    c->at = name + length;
    edit->a = 1;
    if (edit->vector_heads > 1) edit->flags |= QKV_EDIT_BY_HEAD;
    return QKV_OK;
}

/* ---- directions ---- */

static int is_in(const uint8_t *map, int64_t i) {
    return !map || map[i];
}

/* Does the edit use row (token, head) of its vector? A row of a key/value head serves several query
 * heads. */
static int uses_row(const qkv_edit *edit, int64_t token, int64_t head) {
    const qkv_selector *where = &edit->where;
    if (edit->vector_tokens && !is_in(where->rows, token)) return 0;
    if (edit->vector_heads == 1 || !where->heads) return 1;
    const int64_t share = edit->vector_heads_named / edit->vector_heads;
    for (int64_t h = head * share; h < (head + 1) * share; h++) {
        if (where->heads[h]) return 1;
    }
    return 0;
}

static double square_of(const float *v, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)v[i] * (double)v[i];
    return sum;
}

static int check_direction(const qkv_edit *edit, qkv_error *err) {
    const qkv_vector *v = edit->vector;
    const int64_t width = v->shape[v->n_dims - 1];
    for (int64_t t = 0; t == 0 || t < edit->vector_tokens; t++) {
        for (int64_t h = 0; h < edit->vector_heads; h++) {
            const float *row = v->values + (t * edit->vector_heads + h) * width;
            if (!uses_row(edit, t, h) || square_of(row, width) > 0) continue;
            return qkv_fail(err, QKV_ERR_PLAN,
                            "edit '%s': the vector is zero and has no direction that could be "
                            "removed",
                            edit->text);
        }
    }
    return QKV_OK;
}

int qkv_vector_check(const qkv_edit *edit, int64_t n_positions, qkv_error *err) {
    if (!edit->vector) return QKV_OK;
    for (int64_t t = edit->vector_tokens; edit->vector_tokens && t < n_positions; t++) {
        if (is_in(edit->where.rows, t))
            return qkv_fail(err, QKV_ERR_PLAN,
                            "edit '%s' acts on new tokens, which the vector has no rows for; name "
                            "tokens of the prompt, e.g. [:%lld]",
                            edit->text, (long long)edit->vector_tokens);
    }
    return edit->op == QKV_OP_REMOVE ? check_direction(edit, err) : QKV_OK;
}

/* ---- values ---- */

const float *qkv_vector_row(const qkv_edit *edit, const qkv_view *view, int32_t head, int64_t t) {
    if (!edit->vector) return NULL;
    const int64_t h = qkv_view_head(view, head) * edit->vector_heads / view->all_heads;
    const int64_t token = edit->vector_tokens ? view->first_row + t : 0;
    return edit->vector->values + (token * edit->vector_heads + h) * view->width;
}

/* (x·v) / (v·v): how much of v is in x. */
static double share_of(const float *vector, const float *x, const qkv_view *view) {
    double both = 0;
    for (int64_t c = 0; c < view->width; c++) {
        both += (double)x[c] * (double)vector[qkv_view_channel(view, c)];
    }
    return both / square_of(vector, view->width);
}

/* ---- remove ---- */

static void begin_row(qkv_edit_row *r) {
    r->number = share_of(r->vector, r->src, r->view);
}

static float removed(const qkv_edit_row *r, int64_t c) {
    return (float)((double)r->src[c] - r->number * (double)qkv_row_vector(r, c));
}

const qkv_operation qkv_operation_remove = {
    .read = qkv_vector_read, .begin_row = begin_row, .value = removed};
