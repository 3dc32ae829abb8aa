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

#include "store/journal.h"

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

#endif
