/*
 * Results: captured tensors, owned once and shared where a variant cannot differ from the baseline.
 */
#ifndef QKV_RUN_RESULT_H
#define QKV_RUN_RESULT_H

#include <stdatomic.h>

#include "qkv/session.h"
#include "run/plan/plan.h"

typedef struct qkv_item {
    size_t variant;
    qkv_site site;
    int32_t layer; /* n_layer for sites without one */
    qkv_tensor tensor;
    float *owned;         /* NULL when the baseline's is shared */
    int32_t *owned_heads; /* likewise */
    int64_t *owned_channels;
} qkv_item;

typedef struct qkv_edit_report {
    char *text;
    char *note; /* may be NULL */
    uint64_t selected;
    int ran; /* 0: nothing captured depends on it, so it was not computed */
} qkv_edit_report;

typedef struct qkv_variant_report {
    qkv_edit_report *edits;
    _Atomic uint64_t *changed; /* what the pass counts, per edit */
    size_t n_edits;
} qkv_variant_report;

struct qkv_result {
    int32_t n_layer;
    qkv_run_stats stats;
    qkv_item *items; /* by variant, then layer, then site */
    size_t n_items, capacity;
    qkv_variant_report *variants;
    size_t n_variants;
};

/* What the item owns. */
void qkv_item_release(qkv_item *item);

int qkv_result_new(qkv_result **out, const qkv_plan *plan, qkv_error *err);

/* One variant's tensor as a pass computed it: some heads (0: the site has none), some rows. */
typedef struct qkv_computed {
    qkv_site site;
    int32_t layer;
    const float *data;
    const double *sums; /* of a reduction, in place of data */
    int32_t first_head, n_heads;
    int64_t n_rows;
    const uint8_t *rows; /* T bytes: the tokens that the rows belong to; NULL: all */
    const float *const
        *copies; /* of q_in, k_in, v_in: what heads read in place of data; may be NULL */
} qkv_computed;

/* Adds what a pass computed. Selects the wanted heads and rows, takes heads that were not computed
 * from the baseline, puts channels into the model's original order, and refuses values that are not
 * finite. */
int qkv_result_add(qkv_result *result, const qkv_plan *plan, size_t variant,
                   const qkv_computed *computed, qkv_error *err);

/* The same for a reduction of patterns: `data` is H times one head's; first_head and n_heads say
 * which were computed. */
int qkv_result_add_reduced(qkv_result *result, const qkv_plan *plan, size_t variant,
                           const qkv_computed *computed, qkv_reduction kind, qkv_error *err);

/* Adds the baseline's tensors of a place, whole and reduced, under another variant. */
int qkv_result_share(qkv_result *result, size_t variant, qkv_site site, int32_t layer,
                     qkv_error *err);

/* Brings the items into their order once all are there. */
void qkv_result_sort(qkv_result *result);

#endif
