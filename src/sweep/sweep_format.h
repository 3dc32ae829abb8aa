/*
 * What the results file of a sweep looks like, and whether a file is one. docs/sweeps.md describes
 * it; qkv/sweep.h writes it, qkv/sweep_reader.h reads it.
 *
 * A file that was checked has these tables and nothing else, its prompts and cells are numbered
 * from 0 without a gap, its results are of its cells and in order, and every value has the type
 * and range that a sweep gives it. Its readers need not check again.
 */
#ifndef QKV_SWEEP_SWEEP_FORMAT_H
#define QKV_SWEEP_SWEEP_FORMAT_H

#include "qkv/sweep.h"
#include "store/journal.h"
#include "sweep/sweep.h"

/* Sweeps that patch one prompt into another have cells with a position, and a view of what is
 * recovered (docs/sweeps.md). All others are as they have been. */
enum { QKV_SWEEP_PLAIN, QKV_SWEEP_PATCHING };

extern const qkv_journal_kind qkv_sweep_journal;

enum { QKV_SWEEP_MOST_INDEX = 99999 }; /* of a layer or a head: no model comes near it */
#define QKV_SWEEP_MOST_POSITION ((int64_t)1 << 40)

typedef struct qkv_sweep_counts {
    int64_t n_prompts, n_cells, n_rows;
    int format;
} qkv_sweep_counts;

/* Checks all of a file: its tables, its format, and every row. */
int qkv_sweep_format_check_rows(qkv_database *db, qkv_sweep_counts *counts, qkv_error *err);

/* ---- the writer and the export ---- */

/* sweep_writer.c: does the file hold the cells of this sweep? */
int qkv_sweep_writer_is_of(const qkv_sweep_writer *results, const qkv_sweep *sweep);

/* sweep_export.c: opens a file to be read, checked and seen as it is at this moment. Close it
 * also after a failure. */
int qkv_sweep_format_open(qkv_database *db, const char *path, qkv_sweep_counts *counts,
                          qkv_error *err);
/* Counts cells without all of their values. */
int qkv_sweep_format_n_without(qkv_database *db, int64_t *n, qkv_error *err);

#endif
