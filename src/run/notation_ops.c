/*
 * OP[:ARGS] of an edit: which operation, and what its arguments are. Operations that are a story of their own
 * (mask, keep, quant, vectors) read theirs in files of their own.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/number.h"
#include "base/text.h"
#include "run/custom.h"
#include "run/notation_cursor.h"
#include "run/other_prompt.h"
#include "run/site.h"
#include "run/vector.h"

/* A finite number that F32 holds in full precision, up to `end` (NULL: the rest). */
static int take_float(qkv_cursor *c, char stop, float *value, const char *what) {
    const char *end = stop ? strchr(c->at, stop) : NULL;
    size_t length = end ? (size_t)(end - c->at) : strlen(c->at);
    double number;
    qkv_cursor_begin(c, stop ? "," : "");
    if (!qkv_parse_double(c->at, length, &number))
        return qkv_cursor_fail(c, QKV_ERR_SYNTAX, "expected %s, not '%.*s'", what, (int)length,
                               c->at);
    *value = (float)number;
    if (!isfinite(*value))
        return qkv_cursor_fail(c, QKV_ERR_PLAN, "%.*s is not a finite number of single precision",
                               (int)length, c->at);
    if (fabsf(*value) < FLT_MIN && !qkv_text_is_zero(c->at, length))
        return qkv_cursor_fail(
            c, QKV_ERR_PLAN,
            "%.*s is too small for single precision, which ends at 1.2e-38; write 0", (int)length,
            c->at);
    c->at += length;
    return QKV_OK;
}

/* What all heads read is one tensor, and so is its mean over them. */
static int fail_equal_heads(qkv_cursor *c, const qkv_edit *edit) {
    return qkv_cursor_fail(c, QKV_ERR_PLAN,
                           "every head reads the same %s: a mean over heads would change nothing",
                           qkv_site_name(qkv_site_unedited(edit->where.site)));
}

/* The mean over heads without the head itself; where heads are shared, without the one that it reads. */
static int parse_mean_others(qkv_cursor *c, qkv_edit *edit) {
    edit->axis = QKV_MEAN_HEAD;
    edit->others = 1;
    c->at += strlen("others");
    if (qkv_site_is_input(edit->where.site)) return fail_equal_heads(c, edit);
    if (qkv_site_n_heads(edit->where.site, c->notation->hp) > 1) return QKV_OK;
    return qkv_cursor_fail(c, QKV_ERR_PLAN, "%s has no other heads to take the mean over",
                           qkv_site_name(edit->where.site));
}

/* The mean over the plan's set of prompts: all their tokens, or those at the same position. */
static int parse_mean_set(qkv_cursor *c, qkv_edit *edit) {
    static const char each[] = ",per=position";
    edit->axis = QKV_MEAN_SET;
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
        c->at += strlen(axes[i]);
        if (i == QKV_MEAN_HEAD && qkv_site_is_input(edit->where.site))
            return fail_equal_heads(c, edit);
        if (i == QKV_MEAN_HEAD && qkv_site_n_heads(edit->where.site, c->notation->hp) == 0)
            return qkv_cursor_fail(c, QKV_ERR_PLAN, "%s has no heads to take the mean over",
                                   qkv_site_name(edit->where.site));
        return QKV_OK;
    }
    return qkv_cursor_fail(c, QKV_ERR_SYNTAX,
                           "mean is taken over head, others, token, dim or set, not '%s'", c->at);
}

/* ,seed=N, or nothing. */
static int parse_seed(qkv_cursor *c, qkv_edit *edit) {
    int64_t seed;
    if (!qkv_cursor_take(c, ',')) return QKV_OK;
    qkv_cursor_begin(c, "");
    if (strncmp(c->at, "seed=", 5) != 0)
        return qkv_cursor_fail(c, QKV_ERR_SYNTAX, "expected seed=N, not '%s'", c->at);
    c->at += 5;
    if (!qkv_cursor_number(c, &seed))
        return qkv_cursor_fail(c, QKV_ERR_SYNTAX, "the seed must be a whole number, not '%s'",
                               c->at);
    edit->seed = (uint64_t)seed;
    return QKV_OK;
}

static int parse_noise(qkv_cursor *c, qkv_edit *edit) {
    int status = take_float(c, ',', &edit->a, "a standard deviation");
    if (status != QKV_OK) return status;
    if (!(edit->a > 0))
        return qkv_cursor_fail(c, QKV_ERR_PLAN, "the standard deviation of noise must be above 0");
    return parse_seed(c, edit);
}

static int parse_clamp(qkv_cursor *c, qkv_edit *edit) {
    int status = take_float(c, ',', &edit->a, "a lower bound");
    if (status != QKV_OK) return status;
    if (!qkv_cursor_take(c, ','))
        return qkv_cursor_fail(c, QKV_ERR_SYNTAX, "clamp needs two bounds, clamp:lo,hi");
    status = take_float(c, 0, &edit->b, "an upper bound");
    if (status != QKV_OK) return status;
    if (edit->a > edit->b)
        return qkv_cursor_fail(c, QKV_ERR_PLAN, "the lower bound of clamp is above the upper one");
    return QKV_OK;
}

/* Which token of the other prompt each selected one takes. */
static int parse_pairs(qkv_cursor *c, qkv_edit *edit, const qkv_source *source) {
    char whole[80];
    snprintf(whole, sizeof whole, "the prompt '%.60s'", source->name);
    const qkv_axis own = qkv_cursor_tokens(c);
    const qkv_axis other = {"token", whole, source->n_prompt, source->n_prompt, '[', ']'};
    qkv_error why = {0};
    const int status = qkv_indices_pair(&edit->from, c->pairs, &own, &other, &why);
    if (status == QKV_OK) return QKV_OK;
    c->at = c->pairs;
    qkv_cursor_begin(c, "]");
    return qkv_cursor_fail(c, status, "%s", why.message);
}

static int parse_patch(qkv_cursor *c, qkv_edit *edit) {
    static const char drawn[] = "resample";
    const qkv_notation *notation = c->notation;
    const size_t length = strcspn(c->at, ",");
    if (length == sizeof drawn - 1 && memcmp(c->at, drawn, length) == 0) {
        edit->resample = 1;
        c->at += length;
        return parse_seed(c, edit);
    }
    for (size_t i = 0; i < notation->n_sources; i++) {
        if (notation->sources[i].is_drawn || strcmp(c->at, notation->sources[i].name) != 0)
            continue;
        edit->source = i;
        c->at += strlen(c->at);
        return c->pairs ? parse_pairs(c, edit, &notation->sources[i]) : QKV_OK;
    }
    return qkv_cursor_fail(c, QKV_ERR_PLAN, "there is no other prompt named '%s' to patch from",
                           c->at);
}

static int parse_custom(qkv_cursor *c, qkv_edit *edit) {
    const qkv_notation *notation = c->notation;
    for (size_t i = 0; i < notation->n_customs; i++) {
        if (strcmp(c->at, qkv_custom_name(notation->customs[i])) != 0) continue;
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

/* @NAME, and of add ,by=F. */
static int parse_vector(qkv_cursor *c, qkv_edit *edit) {
    const char *name = c->at + 1;
    const size_t length = strcspn(name, ",");
    qkv_text why = {0};
    if (*c->at != '@')
        return qkv_cursor_fail(c, QKV_ERR_SYNTAX, "expected a vector, @FILE#NAME, not '%s'", c->at);
    int status = qkv_vector_take(c->notation, edit, name, length, &why);
    if (status != QKV_OK) qkv_cursor_fail(c, status, "%s", why.data ? why.data : "out of memory");
    qkv_text_release(&why);
    if (status != QKV_OK) return status;
    c->at = name + length;
    edit->a = 1;
    if (edit->op != QKV_OP_ADD || strncmp(c->at, ",by=", 4) != 0) return QKV_OK;
    c->at += 4;
    return take_float(c, 0, &edit->a, "a factor");
}

/* Operations with arguments of their own read the rest of the text. */
static int parse_with(qkv_cursor *c, qkv_edit *edit,
                      int (*parse)(qkv_edit *, const char *, qkv_error *)) {
    qkv_error own = {0};
    const int status = parse(edit, c->at, &own);
    if (status != QKV_OK) return qkv_cursor_fail(c, status, "%s", own.message);
    c->at += strlen(c->at);
    return QKV_OK;
}

static int parse_arguments(qkv_cursor *c, qkv_edit *edit) {
    const int may_be_vector = edit->op == QKV_OP_ADD || edit->op == QKV_OP_SET;
    qkv_cursor_begin(c, "");
    if (edit->op == QKV_OP_REMOVE || (may_be_vector && *c->at == '@')) return parse_vector(c, edit);
    switch (edit->op) {
    case QKV_OP_MASK:
        return parse_with(c, edit, qkv_mask_parse);
    case QKV_OP_KEEP:
        return parse_with(c, edit, qkv_keep_parse);
    case QKV_OP_QUANT:
        return parse_with(c, edit, qkv_quant_parse);
    case QKV_OP_MEAN:
        return parse_mean(c, edit);
    case QKV_OP_NOISE:
        return parse_noise(c, edit);
    case QKV_OP_CLAMP:
        return parse_clamp(c, edit);
    case QKV_OP_PATCH:
        return parse_patch(c, edit);
    case QKV_OP_CUSTOM:
        return parse_custom(c, edit);
    default:
        return take_float(c, 0, &edit->a, edit->op == QKV_OP_SCALE ? "a factor" : "a value");
    }
}

static int fail_op(qkv_cursor *c, int length) {
    qkv_text known = {0};
    qkv_nearest near = qkv_nearest_of(c->at, (size_t)length);
    for (int i = 0; i < QKV_OP_COUNT; i++) {
        if (i == QKV_OP_CUSTOM && c->notation->n_customs == 0) continue; /* nothing it could name */
        qkv_text_printf(&known, "%s%s", i ? ", " : "", qkv_op_name((size_t)i));
        qkv_nearest_try(&near, qkv_op_name((size_t)i));
    }
    int status =
        qkv_cursor_fail(c, QKV_ERR_SYNTAX, "there is no operation '%.*s'%s; operations are %s",
                        length, c->at, qkv_nearest_hint(&near), known.data ? known.data : "");
    qkv_text_release(&known);
    return status;
}

int qkv_notation_op(qkv_cursor *c, qkv_edit *edit) {
    size_t length = strcspn(c->at, ":=");
    qkv_cursor_begin(c, ":=");
    for (int i = 0; i < QKV_OP_COUNT; i++) {
        const char *name = qkv_op_name((size_t)i);
        if (strlen(name) != length || strncmp(name, c->at, length) != 0) continue;
        edit->op = (qkv_op)i;
        c->at += length;
        if (qkv_edit_masks(edit) && edit->where.site != QKV_SITE_SCORES)
            return qkv_cursor_fail(c, QKV_ERR_PLAN,
                                   "%s is for scores, before the softmax, not for %s", name,
                                   qkv_site_name(edit->where.site));
        if (edit->op == QKV_OP_QUANT && qkv_site_get_axes(edit->where.site) == QKV_AXES_MAP)
            return qkv_cursor_fail(c, QKV_ERR_PLAN, "quant is for what has channels, not for %s",
                                   qkv_site_name(edit->where.site));
        if (edit->op == QKV_OP_ZERO || edit->op == QKV_OP_FREEZE ||
            (edit->op == QKV_OP_MASK && !*c->at))
            return QKV_OK; /* anything behind it is caught as trailing text */
        if (!qkv_cursor_take(c, ':') || !*c->at)
            return qkv_cursor_fail(c, QKV_ERR_SYNTAX, "%s needs %s behind a colon%s", name,
                                   qkv_op_arguments((size_t)i),
                                   *c->at == '=' ? ", not behind '='" : "");
        return parse_arguments(c, edit);
    }
    return fail_op(c, (int)length);
}
