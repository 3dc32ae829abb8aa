/* Adding captures to what is wanted, all layers or none. */
#include "run/plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void qkv_wanted_release(qkv_wanted *wanted) {
    free(wanted->heads);
    free(wanted->rows);
    free(wanted->channels);
    free(wanted->observed);
    for (size_t i = 0; i < wanted->n_reductions; i++) free(wanted->reductions[i].heads);
    free(wanted->reductions);
    *wanted = (qkv_wanted){0};
}

/* NULL stays NULL. Returns 0 when memory is short. */
static int copy_map(uint8_t **to, const uint8_t *from, int64_t n) {
    *to = from ? qkv_calloc((size_t)n, 1) : NULL;
    if (*to) memcpy(*to, from, (size_t)n);
    return !from || *to;
}

static int copy_reductions(qkv_wanted *to, const qkv_wanted *from, int32_t n_head) {
    if (from->n_reductions == 0) return 1;
    to->reductions = qkv_calloc(from->n_reductions, sizeof *to->reductions);
    if (!to->reductions) return 0;
    for (size_t i = 0; i < from->n_reductions; i++) {
        to->reductions[i] = from->reductions[i];
        to->n_reductions++;
        if (!copy_map(&to->reductions[i].heads, from->reductions[i].heads, n_head)) return 0;
    }
    return 1;
}

/* Release the copy also after a failure. */
static int copy_wanted(const qkv_plan *plan, int32_t layer, qkv_wanted *to,
                       const qkv_wanted *from) {
    const int32_t n_head = qkv_layer_shape_of(&plan->model->hp, layer)->n_head;
    *to = (qkv_wanted){.wanted = from->wanted,
                       .letter = from->letter,
                       .n_heads = from->n_heads,
                       .width = from->width};
    return copy_map(&to->heads, from->heads, from->n_heads) &&
           copy_map(&to->rows, from->rows, plan->n_tokens) &&
           copy_map(&to->channels, from->channels, from->width) &&
           copy_map(&to->observed, from->observed, n_head) && copy_reductions(to, from, n_head);
}

/* ---- one layer ---- */

/* Adds the heads of a capture to what is wanted of one layer already. */
static int merge_capture(const qkv_plan *plan, int32_t layer, qkv_wanted *wanted,
                         const qkv_selector *where, const char *text, qkv_error *err) {
    const qkv_layer_shape *shape = qkv_layer_shape_of(&plan->model->hp, layer);
    int32_t own = qkv_site_n_heads(where->site, &plan->model->hp, layer);
    char letter = where->letter;
    int shared = qkv_site_get_axes(where->site) == QKV_AXES_KEYVALUE;
    /* Where every query head has a key/value head of its own, h and g are the same. */
    if (own && (!letter || shape->n_head == shape->n_kv_head)) letter = shared ? 'g' : 'h';
    if (wanted->wanted && wanted->letter != letter)
        return qkv_fail(
            err, QKV_ERR_PLAN,
            "capture '%s': the same site is already captured by the other kind of heads; "
            "use either h or g",
            text);
    if (own && !wanted->heads) {
        wanted->n_heads = letter == 'g' ? shape->n_kv_head : shape->n_head;
        wanted->heads = qkv_calloc((size_t)wanted->n_heads, 1);
        if (!wanted->heads) return qkv_fail_memory(err);
    }
    for (int32_t h = 0; own && h < wanted->n_heads; h++) {
        if (!where->heads || where->heads[h]) wanted->heads[h] = 1;
    }
    wanted->letter = letter;
    wanted->wanted = 1;
    return QKV_OK;
}

int qkv_wanted_any(const qkv_wanted *wanted) {
    return wanted->wanted || wanted->n_reductions > 0 || wanted->observed;
}

/* One more reduction of a layer's patterns, or more heads of one that is there already. */
static int merge_reduction(const qkv_plan *plan, int32_t layer, qkv_wanted *wanted,
                           const qkv_capture *capture, qkv_error *err) {
    const int32_t n_head = plan->model->hp.layers[layer].n_head;
    qkv_wanted_reduction *found = NULL;
    for (size_t i = 0; i < wanted->n_reductions; i++) {
        if (wanted->reductions[i].kind == capture->reduction) found = &wanted->reductions[i];
    }
    if (found && found->side != capture->side)
        return qkv_fail(
            err, QKV_ERR_PLAN,
            "patterns of one layer are pooled by their %s to %lld and to %lld cells; choose one",
            qkv_reduction_name(found->kind), (long long)found->side, (long long)capture->side);
    if (!found) {
        qkv_wanted_reduction *moved =
            realloc(wanted->reductions, (wanted->n_reductions + 1) * sizeof *moved);
        if (!moved) return qkv_fail_memory(err);
        wanted->reductions = moved;
        found = &moved[wanted->n_reductions];
        *found = (qkv_wanted_reduction){.kind = capture->reduction,
                                        .side = capture->side,
                                        .heads = qkv_calloc((size_t)n_head, 1)};
        if (!found->heads) return qkv_fail_memory(err);
        wanted->n_reductions++;
    }
    for (int32_t h = 0; h < n_head; h++)
        found->heads[h] |= !capture->where.heads || capture->where.heads[h];
    return QKV_OK;
}

/* The tokens or channels that are wanted: the union of all captures. */
static int merge_map(uint8_t **wanted, int is_first, const uint8_t *also, int64_t n,
                     qkv_error *err) {
    if (is_first) return copy_map(wanted, also, n) ? QKV_OK : qkv_fail_memory(err);
    if (!also) {
        free(*wanted);
        *wanted = NULL;
    }
    for (int64_t i = 0; *wanted && i < n; i++) (*wanted)[i] |= also[i];
    return QKV_OK;
}

int qkv_wanted_merge_capture(const qkv_plan *plan, int32_t layer, qkv_wanted *wanted,
                             const void *what, qkv_error *err) {
    const qkv_capture *capture = what;
    const qkv_selector *where = &capture->where;
    if (capture->reduction) return merge_reduction(plan, layer, wanted, capture, err);
    wanted->width = qkv_site_width(where->site, &plan->model->hp, layer, plan->n_tokens);
    int status = merge_map(&wanted->rows, !wanted->wanted, where->rows, plan->n_tokens, err);
    if (status == QKV_OK)
        status = merge_map(&wanted->channels, !wanted->wanted, where->channels, wanted->width, err);
    return status == QKV_OK ? merge_capture(plan, layer, wanted, where, capture->text, err)
                            : status;
}

/* ---- all layers ---- */

static int is_selected(const qkv_plan *plan, const qkv_selector *where, int32_t layer) {
    const int32_t n_layer = plan->model->hp.n_layer;
    if (!qkv_site_has_layer(where->site)) return layer == n_layer;
    return layer < n_layer && where->layers[layer];
}

int qkv_wanted_merge_layers(qkv_plan *plan, const qkv_selector *where, qkv_wanted_merge merge,
                            const void *what, qkv_error *err) {
    const int32_t n_layer = plan->model->hp.n_layer;
    qkv_wanted *drafts = qkv_calloc((size_t)n_layer + 1, sizeof *drafts);
    int status = drafts ? QKV_OK : qkv_fail_memory(err);
    for (int32_t il = 0; il <= n_layer && status == QKV_OK; il++) {
        if (!is_selected(plan, where, il)) continue;
        if (!copy_wanted(plan, il, &drafts[il], qkv_plan_wanted(plan, il, where->site)))
            status = qkv_fail_memory(err);
        else
            status = merge(plan, il, &drafts[il], what, err);
    }
    for (int32_t il = 0; drafts && il <= n_layer; il++) {
        if (status == QKV_OK && is_selected(plan, where, il)) {
            qkv_wanted *place = qkv_plan_wanted(plan, il, where->site);
            const qkv_wanted old = *place;
            *place = drafts[il];
            drafts[il] = old;
        }
        qkv_wanted_release(&drafts[il]);
    }
    free(drafts);
    return status;
}
