#include "run/observer.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "run/plan/plan.h"
#include "run/run.h"

/* The first row of a block with NaN or Inf in it, or -1. */
static int64_t find_bad_row(const qkv_rows *rows) {
    for (int64_t r = 0; r < rows->n_rows; r++) {
        const float *row = rows->data + r * rows->n_keys;
        float sum = 0; /* of zeros, or NaN */
        for (int64_t j = 0; j < rows->n_keys; j++) sum += row[j] * 0.0f;
        if (sum != 0) return r;
    }
    return -1;
}

void qkv_watch_show(qkv_watch *watch, size_t member, int first_layer, qkv_rows rows) {
    const int32_t n_head = watch->plan->model->hp.largest.n_head;
    const uint8_t *wanted = qkv_plan_wanted(watch->plan, rows.layer, QKV_SITE_PATTERN)->observed;
    if (!watch->observer || !wanted || !wanted[rows.head]) return;
    if (first_layer && !watch->touched[member * (size_t)n_head + (size_t)rows.head]) return;
    if (qkv_steps_tick(watch->steps)) return; /* some metrics take long over a map */
    rows.variant = watch->variants[member];
    if (!watch->observer->compare)
        rows.baseline = NULL;
    else if (rows.variant == 0)
        rows.baseline = rows.data;
    int64_t bad = find_bad_row(&rows);
    if (bad >= 0 && atomic_exchange(&watch->found_bad, 1) == 0)
        watch->bad = (qkv_bad_row){rows.variant, rows.layer, rows.head, rows.first_row + bad};
    watch->observer->rows(watch->observer->user, &rows);
}

int qkv_watch_check(const qkv_watch *watch, qkv_error *err) {
    if (!watch->found_bad) return QKV_OK;
    const qkv_bad_row *bad = &watch->bad;
    return qkv_fail(err, QKV_ERR_NUMERIC,
                    "variant %zu (%s): pattern of layer %d is not finite, first at head %d, query "
                    "%lld",
                    bad->variant, bad->variant ? watch->plan->variants[bad->variant].text : "none",
                    bad->layer, bad->head, (long long)bad->query);
}

void qkv_watch_release(qkv_watch *watch) {
    free(watch->touched);
    watch->touched = NULL;
}

/* ---- the public side ---- */

static int merge_observed(const qkv_plan *plan, int32_t layer, qkv_wanted *wanted, const void *what,
                          qkv_error *err) {
    const qkv_selector *where = what;
    const int32_t n_head = plan->model->hp.layers[layer].n_head;
    if (!wanted->observed) wanted->observed = qkv_calloc((size_t)n_head, 1);
    if (!wanted->observed) return qkv_fail_memory(err);
    for (int32_t h = 0; h < n_head; h++) wanted->observed[h] |= !where->heads || where->heads[h];
    return QKV_OK;
}

static int parse(const qkv_plan *plan, qkv_capture *capture, const char *what, qkv_error *err) {
    qkv_notation notation = {.hp = &plan->model->hp, .n_tokens = plan->n_tokens};
    int status = qkv_notation_capture(&notation, capture, what, err);
    if (status != QKV_OK) return status;
    if (qkv_site_is_weights(capture->where.site) && !capture->reduction) return QKV_OK;
    qkv_selector_release(&capture->where);
    return qkv_fail(err, QKV_ERR_PLAN,
                    "'%s' cannot be observed; only patterns can, e.g. pattern@3.h0", what);
}

int qkv_plan_observe(qkv_plan *plan, const char *what, qkv_error *err) {
    QKV_NEED(err, plan);
    QKV_NEED(err, what);
    qkv_capture capture;
    int status = parse(plan, &capture, what, err);
    if (status != QKV_OK) return status;
    status = qkv_wanted_merge_layers(plan, &capture.where, merge_observed, &capture.where, err);
    if (status == QKV_OK) plan->observed = 1;
    qkv_selector_release(&capture.where);
    return status;
}

int qkv_plan_select(const qkv_plan *plan, const char *what, uint8_t *layers, uint8_t *heads,
                    qkv_error *err) {
    QKV_NEED(err, plan);
    QKV_NEED(err, what);
    QKV_NEED(err, layers);
    QKV_NEED(err, heads);
    qkv_capture capture;
    int status = parse(plan, &capture, what, err);
    if (status != QKV_OK) return status;
    const qkv_hparams *hp = &plan->model->hp;
    for (int32_t il = 0; il < hp->n_layer; il++) layers[il] = capture.where.layers[il];
    for (int32_t h = 0; h < hp->largest.n_head; h++)
        heads[h] = !capture.where.heads || capture.where.heads[h];
    qkv_selector_release(&capture.where);
    return QKV_OK;
}

void qkv_visible_keys(const qkv_model *model, int32_t layer, int64_t n_tokens, int64_t query,
                      int64_t *first, int64_t *end) {
    if (!first || !end) return;
    *first = *end = 0;
    if (!model || layer < 0 || layer >= model->hp.n_layer || query < 0 || query >= n_tokens) return;
    int64_t window = qkv_layer_window(model, layer);
    *first = qkv_layer_first_key(model, layer, query);
    *end = query + 1;
    if (!model->hp.causal) *end = window && query + window < n_tokens ? query + window : n_tokens;
}
