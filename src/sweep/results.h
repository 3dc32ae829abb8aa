/* What files of results have in common; qkv/sweep.h and docs/sweeps.md describe them. */
#ifndef QKV_SWEEP_RESULTS_H
#define QKV_SWEEP_RESULTS_H

#include "qkv/sweep.h"
#include "store/database.h"
#include "store/results_format.h"

/* results_export.c: opens a file to be read, checked and seen as it is at this moment. Close it
 * also after a failure. */
int qkv_results_open_checked(qkv_database *db, const char *path, qkv_results_counts *counts,
                             qkv_error *err);
/* Counts cells without all of their values. */
int qkv_results_n_without(qkv_database *db, int64_t *n, qkv_error *err);

#endif
