/*
 * patch and freeze: values of another run, of another prompt or of the unedited one.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "run/notation/notation_cursor.h"
#include "run/ops/edit_apply.h"
#include "run/plan/other_prompt.h"
#include "run/plan/plan.h"

/* ---- text ---- */

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
        return qkv_cursor_seed(c, edit);
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

/* ---- checks ---- */

/* What no other edit can change need not be kept as it is. */
static int check_freeze(const qkv_plan *plan, qkv_variant *variant, qkv_error *err) {
    const int32_t n_layer = plan->model->hp.n_layer;
    for (size_t i = 0; i < variant->n_edits; i++) {
        const qkv_edit *edit = &variant->edits[i];
        int found = !(edit->flags & QKV_EDIT_TAKES_UNEDITED);
        for (int32_t il = 0; il <= n_layer && !found; il++)
            found = qkv_plan_is_disturbed(plan, variant, edit, il);
        if (!found)
            return qkv_fail(err, QKV_ERR_PLAN,
                            "edit '%s' can have no effect: no other edit of the variant changes "
                            "what it freezes",
                            edit->text);
    }
    return QKV_OK;
}

/* ---- arithmetic ---- */

static float taken(const qkv_edit_row *r, int64_t c) {
    assert(r->patch);
    return r->patch[c];
}

const qkv_operation qkv_operation_patch = {.read = parse_patch, .value = taken};
const qkv_operation qkv_operation_freeze = {.check = check_freeze, .value = taken};
