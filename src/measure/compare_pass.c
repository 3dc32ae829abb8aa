/*
 * Cuts the work on a prompt into pairs of passes. A pass is filled in the order of the layers with
 * states and rows of patterns until the memory is used up, and with rows of logits at the end; where
 * all of it fits there is one. A pass that ends at a layer computes nothing after it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "measure/compare.h"
#include "run/run.h"

int qkv_compare_pass_new(compare_pass *pass, const qkv_compare *compare, int64_t n_tokens,
                         size_t memory, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(compare->models[0]);
    *pass = (compare_pass){.n_layer = info->n_layer,
                           .n_head = info->n_head,
                           .n_tokens = n_tokens,
                           .n_embd = info->n_embd,
                           .n_vocab = info->has_logits ? info->n_vocab : 0,
                           .memory = memory,
                           .copies = compare->edits ? 3 : 2};
    pass->states = qkv_calloc((size_t)info->n_layer, 1);
    pass->rows = qkv_calloc((size_t)info->n_layer * (size_t)info->n_head, sizeof *pass->rows);
    return pass->states && pass->rows ? QKV_OK : qkv_fail_memory(err);
}

void qkv_compare_pass_release(compare_pass *pass) {
    free(pass->states);
    free(pass->rows);
}

/* ---- filling ---- */

/* How many of `wanted` parts fit into *left; the first part of a pass always does. */
static int64_t take_parts(int64_t wanted, size_t bytes, size_t *left, int *is_empty) {
    int64_t n = (int64_t)(*left / bytes);
    if (n > wanted) n = wanted;
    if (n == 0 && *is_empty && wanted > 0) n = 1;
    const size_t taken = (size_t)n * bytes;
    *left = taken < *left ? *left - taken : 0;
    if (n) *is_empty = 0;
    return n;
}

/* Returns 0 when the pass is full before the layer is done. */
static int take_layer(compare_pass *pass, compare_cursor *at, size_t *left, int *is_empty) {
    const size_t state = pass->copies * (size_t)(pass->n_tokens * pass->n_embd) * sizeof(float);
    const size_t row = (size_t)pass->n_tokens * sizeof(float);
    if (!at->has_states) {
        if (!take_parts(1, state, left, is_empty)) return 0;
        pass->states[at->layer] = 1;
        at->has_states = 1;
    }
    while (at->head < pass->n_head) {
        const int64_t n = take_parts(pass->n_tokens - at->row, row, left, is_empty);
        compare_rows *rows = &pass->rows[at->layer * pass->n_head + at->head];
        *rows = (compare_rows){at->row, at->row + n, pass->n_kept};
        pass->n_kept += (size_t)(n * pass->n_tokens);
        at->row += n;
        if (at->row < pass->n_tokens) return 0;
        at->row = 0;
        at->head++;
    }
    at->layer++;
    at->head = 0;
    at->has_states = 0;
    return 1;
}

static void take_logits(compare_pass *pass, compare_cursor *at, size_t *left, int *is_empty) {
    const size_t row = pass->copies * (size_t)pass->n_vocab * sizeof(float);
    if (!pass->n_vocab) return;
    const int64_t n = take_parts(pass->n_tokens - at->row, row, left, is_empty);
    pass->first_logit = at->row;
    pass->end_logit = at->row + n;
    at->row += n;
}

int qkv_compare_pass_next(compare_pass *pass, compare_cursor *cursor) {
    size_t left = pass->memory;
    int is_empty = 1;
    memset(pass->states, 0, (size_t)pass->n_layer);
    memset(pass->rows, 0, (size_t)(pass->n_layer * pass->n_head) * sizeof *pass->rows);
    pass->first_logit = pass->end_logit = 0;
    pass->n_kept = 0;
    while (cursor->layer < pass->n_layer) {
        if (!take_layer(pass, cursor, &left, &is_empty)) return 1;
    }
    take_logits(pass, cursor, &left, &is_empty);
    return !is_empty;
}

/* ---- as a plan ---- */

static int observe_head(const compare_pass *pass, int32_t layer, int32_t head, qkv_plan *plan,
                        qkv_error *err) {
    const compare_rows *rows = &pass->rows[layer * pass->n_head + head];
    char what[64];
    if (rows->first == rows->end) return QKV_OK;
    snprintf(what, sizeof what, "pattern@%" PRId32 ".h%" PRId32, layer, head);
    return qkv_plan_observe(plan, what, err);
}

int qkv_compare_pass_plan(const compare_pass *pass, qkv_plan *plan, qkv_error *err) {
    char what[96];
    int status = QKV_OK;
    for (int32_t layer = 0; layer < pass->n_layer && status == QKV_OK; layer++) {
        snprintf(what, sizeof what, "resid_post@%" PRId32, layer);
        if (pass->states[layer]) status = qkv_plan_add_capture(plan, what, err);
        for (int32_t h = 0; h < pass->n_head && status == QKV_OK; h++)
            status = observe_head(pass, layer, h, plan, err);
    }
    if (status != QKV_OK || pass->first_logit == pass->end_logit) return status;
    snprintf(what, sizeof what, "logits[%" PRId64 ":%" PRId64 "]", pass->first_logit,
             pass->end_logit);
    return qkv_plan_add_capture(plan, what, err);
}
