/*
 * mean: over heads, other heads, tokens or channels of the tensor itself, or over a set of prompts (set_means.c).
 */
#include <string.h>

#include "run/notation/notation_cursor.h"
#include "run/ops/edit_apply.h"
#include "run/site.h"

/* ---- text ---- */

/* A cell that the mask hides in one head, it hides in all of them: their mean is 0. */
enum { OVER_HEADS = QKV_EDIT_ALL_HEADS | QKV_EDIT_KEEPS_ZERO };

/* What all heads read is one tensor, and so is its mean over them. */
static int fail_equal_heads(qkv_cursor *c, const qkv_edit *edit) {
    return qkv_cursor_fail(c, QKV_ERR_PLAN,
                           "every head reads the same %s: a mean over heads would change nothing",
                           qkv_site_name(qkv_site_unedited(edit->where.site)));
}

/* In all of its layers? */
static int has_other_heads(const qkv_hparams *hp, const qkv_selector *where) {
    for (int32_t il = 0; where->layers && il < hp->n_layer; il++) {
        if (where->layers[il] && qkv_site_n_heads(where->site, hp, il) < 2) return 0;
    }
    return qkv_site_has_heads(where->site);
}

/* The mean over heads without the head itself; where heads are shared, without the one that it reads. */
static int parse_mean_others(qkv_cursor *c, qkv_edit *edit) {
    edit->axis = QKV_MEAN_HEAD;
    edit->flags |= OVER_HEADS;
    edit->others = 1;
    c->at += strlen("others");
    if (qkv_site_is_input(edit->where.site)) return fail_equal_heads(c, edit);
    if (has_other_heads(c->notation->hp, &edit->where)) return QKV_OK;
    return qkv_cursor_fail(c, QKV_ERR_PLAN, "%s has no other heads to take the mean over",
                           qkv_site_name(edit->where.site));
}

/* The mean over the plan's set of prompts: all their tokens, or those at the same position. */
static int parse_mean_set(qkv_cursor *c, qkv_edit *edit) {
    static const char each[] = ",per=position";
    edit->axis = QKV_MEAN_SET;
    edit->flags &= ~(unsigned)QKV_EDIT_SPREADS;
    edit->flags |= QKV_EDIT_TAKES_SET | QKV_EDIT_BY_TOKEN;
    c->at += strlen("set");
    if (strncmp(c->at, each, sizeof each - 1) == 0) {
        edit->axis = QKV_MEAN_SET_POSITION;
        c->at += sizeof each - 1;
    }
    if (*c->at)
        return qkv_cursor_fail(
            c, QKV_ERR_SYNTAX,
            "a mean over a set is mean:set, or mean:set,per=position; not 'set%s'", c->at);
    return QKV_OK;
}

static int parse_mean(qkv_cursor *c, qkv_edit *edit) {
    static const char *const axes[] = {
        [QKV_MEAN_HEAD] = "head", [QKV_MEAN_TOKEN] = "token", [QKV_MEAN_DIM] = "dim"};
    if (strcmp(c->at, "others") == 0) return parse_mean_others(c, edit);
    if (strncmp(c->at, "set", 3) == 0 && (!c->at[3] || c->at[3] == ','))
        return parse_mean_set(c, edit);
    for (int i = 0; i < 3; i++) {
        if (strcmp(c->at, axes[i]) != 0) continue;
        edit->axis = (qkv_mean_axis)i;
        if (i == QKV_MEAN_HEAD) edit->flags |= OVER_HEADS;
        if (i == QKV_MEAN_TOKEN) edit->flags |= QKV_EDIT_WHOLE_MAP;
        c->at += strlen(axes[i]);
        if (i == QKV_MEAN_HEAD && qkv_site_is_input(edit->where.site))
            return fail_equal_heads(c, edit);
        if (i == QKV_MEAN_HEAD && !qkv_site_has_heads(edit->where.site))
            return qkv_cursor_fail(c, QKV_ERR_PLAN, "%s has no heads to take the mean over",
                                   qkv_site_name(edit->where.site));
        return QKV_OK;
    }
    return qkv_cursor_fail(c, QKV_ERR_SYNTAX,
                           "mean is taken over head, others, token, dim or set, not '%s'", c->at);
}

static const char *needs_text(const qkv_edit *edit) {
    if (edit->axis == QKV_MEAN_TOKEN)
        return "takes a mean over all tokens, also those that are not there yet";
    if (edit->axis == QKV_MEAN_DIM && qkv_site_get_axes(edit->where.site) == QKV_AXES_MAP)
        return "takes a mean over all keys, also those that are not there yet";
    return NULL;
}

/* ---- arithmetic ---- */

/* In a split group every query head counts; where they are still copies of one another, that is the
 * mean over the key/value heads. All copies of the own one are the head itself. */
static float mean_over_heads(const qkv_edit_row *r, int64_t c) {
    const qkv_view *v = r->view;
    const int32_t own = r->edit->others ? (v->first_head + r->head) / v->group : -1;
    double sum = 0;
    int32_t n = 0;
    for (int32_t h = 0; h < v->n_heads; h++) {
        if ((v->first_head + h) / v->group == own) continue;
        sum += (double)v->src[h * v->src_head_stride + r->index * v->row_stride + c];
        n++;
    }
    return (float)(sum / n);
}

static void mean_over_tokens(const qkv_view *view, int32_t head, float *mean) {
    for (int64_t c = 0; c < view->width; c++) {
        const float *src = view->src + head * view->src_head_stride + c;
        double sum = 0;
        for (int64_t t = 0; t < view->n_rows; t++) sum += (double)src[t * view->row_stride];
        mean[c] = (float)(sum / (double)view->n_rows);
    }
}

static float mean_over_row(const qkv_edit_row *r) {
    double sum = 0;
    for (int64_t c = 0; c < r->view->width; c++) sum += (double)r->src[c];
    return (float)(sum / (double)r->view->width);
}

static void begin_head(const qkv_edit *edit, const qkv_view *view, int32_t head, float *scratch) {
    if (edit->axis == QKV_MEAN_TOKEN) mean_over_tokens(view, head, scratch);
}

static void begin_row(qkv_edit_row *r) {
    if (r->edit->axis == QKV_MEAN_DIM) r->number = (double)mean_over_row(r);
}

static float mean_at(const qkv_edit_row *r, int64_t c) {
    if (r->patch) return r->patch[c];
    if (r->edit->axis == QKV_MEAN_HEAD) return mean_over_heads(r, c);
    return r->edit->axis == QKV_MEAN_TOKEN ? r->scratch[c] : (float)r->number;
}

const qkv_operation qkv_operation_mean = {.read = parse_mean,
                                          .needs_text = needs_text,
                                          .begin_head = begin_head,
                                          .begin_row = begin_row,
                                          .value = mean_at};
