/*
 * What an observer sees of a pass: rows of patterns, as the graph computes them.
 */
#ifndef QKV_RUN_OBSERVER_H
#define QKV_RUN_OBSERVER_H

#include <stdatomic.h>

#include "base/steps.h"
#include "run/plan/plan.h"
#include "run/run.h"

/* Where a row that is not finite was met first. */
typedef struct qkv_bad_row {
    size_t variant;
    int32_t layer, head;
    int64_t query;
} qkv_bad_row;

typedef struct qkv_watch {
    const qkv_plan *plan;
    const qkv_observer *observer; /* NULL: nothing is shown */
    const size_t *variants;       /* of the members; one more member is the baseline */
    size_t n_variants;
    uint8_t *touched; /* n_variants × H: heads that differ from the baseline in the first layer */
    qkv_steps *steps; /* who may stop the pass */
    atomic_int found_bad;
    qkv_bad_row bad;
} qkv_watch;

/* Shows a block to the observer, if it wants the head and the variant can change it. `rows` lacks
 * nothing but the variant. Called by several threads. */
void qkv_watch_show(qkv_watch *watch, size_t member, int first_layer, qkv_rows rows);
/* Fails when a row was not finite. */
int qkv_watch_check(const qkv_watch *watch, qkv_error *err);
void qkv_watch_release(qkv_watch *watch);

#endif
