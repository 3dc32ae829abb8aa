/*
 * Operations on single elements, with a number or two: scale, set, zero, add, noise, clamp. Set and add take
 * vectors too.
 */
#include <string.h>

#include "base/random.h"
#include "run/notation/notation_cursor.h"
#include "run/ops/edit_apply.h"

static void note_zero(qkv_edit *edit, int keeps_zero) {
    if (keeps_zero) edit->flags |= QKV_EDIT_KEEPS_ZERO;
}

/* ---- scale and zero ---- */

static int read_factor(qkv_cursor *c, qkv_edit *edit) {
    return qkv_cursor_float(c, 0, &edit->a, "a factor");
}

static float scaled(const qkv_edit_row *r, int64_t c) {
    return r->edit->a * r->src[c];
}

static float zero(const qkv_edit_row *r, int64_t c) {
    (void)r, (void)c;
    return 0;
}

const qkv_operation qkv_operation_scale = {.read = read_factor, .value = scaled};
const qkv_operation qkv_operation_zero = {.value = zero};

/* ---- set and add ---- */

static int read_value(qkv_cursor *c, qkv_edit *edit) {
    const int status =
        *c->at == '@' ? qkv_vector_read(c, edit) : qkv_cursor_float(c, 0, &edit->a, "a value");
    if (status == QKV_OK) note_zero(edit, edit->a == 0);
    return status;
}

/* @NAME,by=F */
static int read_added(qkv_cursor *c, qkv_edit *edit) {
    int status = read_value(c, edit);
    if (status != QKV_OK || !edit->vector || strncmp(c->at, ",by=", 4) != 0) return status;
    c->at += 4;
    status = read_factor(c, edit);
    if (status == QKV_OK) note_zero(edit, edit->a == 0);
    return status;
}

static float replaced(const qkv_edit_row *r, int64_t c) {
    return r->vector ? qkv_row_vector(r, c) : r->edit->a;
}

static float added(const qkv_edit_row *r, int64_t c) {
    return r->src[c] + r->edit->a * (r->vector ? qkv_row_vector(r, c) : 1);
}

const qkv_operation qkv_operation_set = {.read = read_value, .value = replaced};
const qkv_operation qkv_operation_add = {.read = read_added, .value = added};

/* ---- noise ---- */

static int read_noise(qkv_cursor *c, qkv_edit *edit) {
    int status = qkv_cursor_float(c, ',', &edit->a, "a standard deviation");
    if (status != QKV_OK) return status;
    if (!(edit->a > 0))
        return qkv_cursor_fail(c, QKV_ERR_PLAN, "the standard deviation of noise must be above 0");
    return qkv_cursor_seed(c, edit);
}

/* Keyed by what the element is, not by where it lies in memory: the same noise however the run is
 * batched. */
static float noise_at(const qkv_edit_row *r, int64_t c) {
    const qkv_view *v = r->view;
    uint64_t key = qkv_random_mix(r->edit->seed, (uint64_t)v->site);
    key = qkv_random_mix(key, (uint64_t)v->layer);
    key = qkv_random_mix(key, (uint64_t)qkv_counted_head(r->edit, v, r->head));
    key = qkv_random_mix(key, (uint64_t)(v->first_row + r->index));
    return qkv_random_gaussian(
        qkv_random_mix(key, (uint64_t)(v->first_col + qkv_view_channel(v, c))));
}

static float noisy(const qkv_edit_row *r, int64_t c) {
    return r->src[c] + r->edit->a * noise_at(r, c);
}

const qkv_operation qkv_operation_noise = {.read = read_noise, .value = noisy};

/* ---- clamp ---- */

static int read_bounds(qkv_cursor *c, qkv_edit *edit) {
    int status = qkv_cursor_float(c, ',', &edit->a, "a lower bound");
    if (status != QKV_OK) return status;
    if (!qkv_cursor_take(c, ','))
        return qkv_cursor_fail(c, QKV_ERR_SYNTAX, "clamp needs two bounds, clamp:lo,hi");
    status = qkv_cursor_float(c, 0, &edit->b, "an upper bound");
    if (status != QKV_OK) return status;
    if (edit->a > edit->b)
        return qkv_cursor_fail(c, QKV_ERR_PLAN, "the lower bound of clamp is above the upper one");
    note_zero(edit, edit->a <= 0 && edit->b >= 0);
    return QKV_OK;
}

static float clamped(const qkv_edit_row *r, int64_t c) {
    const float x = r->src[c], low = r->edit->a, high = r->edit->b;
    return x < low ? low : x > high ? high : x;
}

const qkv_operation qkv_operation_clamp = {.read = read_bounds, .value = clamped};
