/* What files of results have in common; qkv/sweep.h and docs/sweeps.md describe them. */
#ifndef QKV_SWEEP_SWEEP_WRITER_H
#define QKV_SWEEP_SWEEP_WRITER_H

#include "qkv/sweep.h"
#include "sweep/sweep.h"
#include "sweep/sweep_format.h"

/* sweep_writer.c: does the file hold the cells of this sweep? */
int qkv_sweep_writer_is_of(const qkv_sweep_writer *results, const qkv_sweep *sweep);

/* sweep_export.c: opens a file to be read, checked and seen as it is at this moment. Close it
 * also after a failure. */
int qkv_sweep_format_open(qkv_database *db, const char *path, qkv_sweep_counts *counts,
                          qkv_error *err);
/* Counts cells without all of their values. */
int qkv_sweep_format_n_without(qkv_database *db, int64_t *n, qkv_error *err);

#endif
