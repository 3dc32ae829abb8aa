#include "run/ops/op_mask.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "run/notation/notation_cursor.h"
#include "run/ops/edit_apply.h"
#include "run/plan/plan.h"
#include "run/run.h"

static int parse(qkv_edit *edit, const char *text, qkv_error *err) {
    const qkv_argument list[] = {{"sink", &edit->mask.sink, 0, INT32_MAX, NULL, 0},
                                 {"recent", &edit->mask.recent, 0, INT32_MAX, NULL, 0},
                                 {"band", &edit->mask.band, 1, INT32_MAX, NULL, 0},
                                 {"positions", &edit->mask.in_cache, 0, 0, "text|cache", 0}};
    const int status = qkv_arguments_read(text, list, sizeof list / sizeof *list, err);
    if (status != QKV_OK || !edit->mask.in_cache || (edit->mask.recent && !edit->mask.band))
        return status;
    return qkv_fail(err, QKV_ERR_SYNTAX, "positions=cache goes with sink= and recent=");
}

static int read(qkv_cursor *c, qkv_edit *edit) {
    return qkv_cursor_read(c, edit, parse);
}

int64_t qkv_mask_ahead(const qkv_mask_rule *rule, int64_t query) {
    const int64_t position = rule->sink + rule->recent - 1;
    return rule->in_cache && query > position ? query - position : 0;
}

/* Does the rule take this key away from this query? */
static int hides(const qkv_mask_rule *rule, int64_t query, int64_t key) {
    const int64_t back = query - key;
    if (key < rule->sink || (back >= 0 && back < rule->recent)) return 0;
    return back >= rule->band || -back >= rule->band;
}

/* ---- queries without keys ---- */

/* The masks of a variant that cover one head of one layer. */
typedef struct head_masks {
    const qkv_edit **edits;
    size_t n;
} head_masks;

static void list_masks(head_masks *masks, const qkv_plan *plan, const qkv_variant *variant,
                       int32_t layer, int32_t head) {
    masks->n = 0;
    for (size_t i = 0; i < variant->n_edits; i++) {
        const qkv_edit *edit = &variant->edits[i];
        if (edit->op == QKV_OP_MASK && qkv_selector_has_layer(&edit->where, layer) &&
            qkv_selector_has_query_head(&edit->where, &plan->model->hp, layer, head))
            masks->edits[masks->n++] = edit;
    }
}

static int same_masks(const head_masks *a, const head_masks *b) {
    if (a->n != b->n) return 0;
    for (size_t i = 0; i < a->n; i++) {
        if (a->edits[i] != b->edits[i]) return 0;
    }
    return 1;
}

/* The edit that hides the key, or NULL. */
static const qkv_edit *hidden_by(const head_masks *masks, int64_t query, int64_t key) {
    for (size_t i = 0; i < masks->n; i++) {
        const qkv_selector *where = &masks->edits[i]->where;
        if ((!where->rows || where->rows[query]) && (!where->cols || where->cols[key]) &&
            hides(&masks->edits[i]->mask, query, key))
            return masks->edits[i];
    }
    return NULL;
}

/* The first query of the layer that sees nothing, or -1. Keys are tried from the last one back: most
 * masks leave the query's own. */
static int64_t find_empty(const qkv_plan *plan, const head_masks *masks, int32_t layer,
                          const qkv_edit **by) {
    const int64_t n = plan->text.n_positions;
    for (int64_t i = 0; i < n; i++) {
        int64_t first, end;
        qkv_visible_keys(plan->model, layer, n, i, &first, &end);
        *by = NULL;
        int64_t j = end - 1;
        for (; j >= first; j--) {
            const qkv_edit *edit = hidden_by(masks, i, j);
            if (!edit) break;
            *by = edit;
        }
        if (j < first) return i;
    }
    return -1;
}

static int fail_empty(const qkv_edit *edit, int32_t layer, int32_t head, int64_t row,
                      qkv_error *err) {
    return qkv_fail(err, QKV_ERR_PLAN,
                    "edit '%s' leaves nothing of row %lld in layer %d, head %d: the query would "
                    "see no key; leave it one, or leave out the row, e.g. [%lld:]",
                    edit->text, (long long)row, layer, head, (long long)row + 1);
}

/* Heads and layers with the same masks and the same window are looked at once. */
static int check_heads(const qkv_plan *plan, const qkv_variant *variant, head_masks *masks,
                       head_masks *known, qkv_error *err) {
    const qkv_hparams *hp = &plan->model->hp;
    int64_t known_window = -1;
    for (int32_t il = 0; il < hp->n_layer; il++) {
        for (int32_t h = 0; h < hp->layers[il].n_head; h++) {
            list_masks(masks, plan, variant, il, h);
            const int64_t window = qkv_layer_window(plan->model, il);
            if (!masks->n || (window == known_window && same_masks(masks, known))) continue;
            const qkv_edit *by = NULL;
            const int64_t row = find_empty(plan, masks, il, &by);
            assert(row < 0 || by); /* without masks, every query sees itself at least */
            if (row >= 0) return fail_empty(by, il, h, row, err);
            const head_masks other = *known;
            *known = *masks;
            *masks = other;
            known_window = window;
        }
    }
    return QKV_OK;
}

/* ---- positions ---- */

static int check_positions(const qkv_plan *plan, const qkv_edit *edit, qkv_error *err) {
    const qkv_model *model = plan->model;
    int turns = 0;
    if (!model->hp.causal)
        return qkv_fail(err, QKV_ERR_PLAN,
                        "edit '%s': positions=cache is for models whose queries come one after the "
                        "other, not for an encoder",
                        edit->text);
    if (model->family->norm_after_rope)
        return qkv_fail(err, QKV_ERR_PLAN,
                        "edit '%s': positions=cache is not supported for %s, which normalises "
                        "queries after RoPE",
                        edit->text, model->family->name);
    for (int32_t il = 0; il < model->hp.n_layer; il++)
        turns |= qkv_selector_has_layer(&edit->where, il) && qkv_layer_rope(model, il) >= 0;
    if (turns || model->hp.alibi_exponent != 0) return QKV_OK;
    return qkv_fail(
        err, QKV_ERR_PLAN,
        "edit '%s': positions=cache can have no effect: none of these layers has RoPE or "
        "ALiBi; leave it out",
        edit->text);
}

/* A query has one position in a head. */
static int check_same_queries(const qkv_plan *plan, const qkv_edit *a, const qkv_edit *b,
                              qkv_error *err) {
    qkv_selector x = a->where, y = b->where;
    x.cols = y.cols = NULL;
    if (!qkv_selector_overlap(&x, &y, &plan->model->hp, plan->text.n_positions)) return QKV_OK;
    return qkv_fail(err, QKV_ERR_PLAN,
                    "edits '%s' and '%s' give positions to the same queries: positions=cache may "
                    "stand in one of them",
                    a->text, b->text);
}

static int check_all_positions(const qkv_plan *plan, const qkv_variant *variant, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < variant->n_edits && status == QKV_OK; i++) {
        const qkv_edit *edit = &variant->edits[i];
        if (!edit->mask.in_cache) continue;
        status = check_positions(plan, edit, err);
        for (size_t k = 0; k < i && status == QKV_OK; k++) {
            const qkv_edit *other = &variant->edits[k];
            if (other->mask.in_cache) status = check_same_queries(plan, edit, other, err);
        }
    }
    return status;
}

static int check(const qkv_plan *plan, qkv_variant *variant, qkv_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < variant->n_edits; i++) n += variant->edits[i].op == QKV_OP_MASK;
    if (n && check_all_positions(plan, variant, err) != QKV_OK) return QKV_ERR_PLAN;
    if (!n || plan->model->hp.has_sink) return QKV_OK;
    head_masks masks = {.edits = calloc(n, sizeof *masks.edits)};
    head_masks known = {.edits = calloc(n, sizeof *known.edits)};
    const int status = masks.edits && known.edits ? check_heads(plan, variant, &masks, &known, err)
                                                  : qkv_fail_memory(err);
    free((void *)masks.edits);
    free((void *)known.edits);
    return status;
}

/* ---- arithmetic ---- */

static float masked(const qkv_edit_row *r, int64_t c) {
    const qkv_mask_rule *rule = &r->edit->mask;
    const int64_t query = r->view->first_row + r->index, key = r->view->first_col + c;
    if (hides(rule, query, key)) return -INFINITY;
    return r->moved && key < rule->sink && qkv_mask_ahead(rule, query) ? r->moved[c] : r->src[c];
}

const qkv_operation qkv_operation_mask = {.read = read, .check = check, .value = masked};
