/*
 * What is wanted of one site of one layer, and adding to it. A capture that covers several layers is
 * added to all of them or, when one of them refuses it, to none.
 */
#ifndef QKV_RUN_WANTED_H
#define QKV_RUN_WANTED_H

#include "run/plan.h"

/* Adds `what` to what is wanted of one layer. It may leave `wanted` half changed when it fails. */
typedef int (*qkv_wanted_merge)(const qkv_plan *plan, qkv_wanted *wanted, const void *what,
                                qkv_error *err);

/* The same for all layers that `where` selects; the plan is unchanged when one of them fails. */
int qkv_wanted_merge_layers(qkv_plan *plan, const qkv_selector *where, qkv_wanted_merge merge,
                            const void *what, qkv_error *err);

/* `what` is a qkv_capture. */
int qkv_wanted_merge_capture(const qkv_plan *plan, qkv_wanted *wanted, const void *what,
                             qkv_error *err);

void qkv_wanted_release(qkv_wanted *wanted);

#endif
