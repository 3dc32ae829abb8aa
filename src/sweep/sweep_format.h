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

#include "store/database.h"

/* Sweeps that patch one prompt into another have cells with a position, and a view of what is
 * recovered (docs/sweeps.md). All others are as they have been. */
typedef enum qkv_sweep_format { QKV_SWEEP_PLAIN, QKV_SWEEP_PATCHING } qkv_sweep_format;

/* "qkv sweep 1" */
const char *qkv_sweep_format_name(qkv_sweep_format format);

enum { QKV_SWEEP_MOST_INDEX = 99999 }; /* of a layer or a head: no model comes near it */
#define QKV_SWEEP_MOST_POSITION ((int64_t)1 << 40)

typedef struct qkv_sweep_counts {
    int64_t n_prompts, n_cells, n_rows;
    qkv_sweep_format format;
} qkv_sweep_counts;

/* Makes the tables in an empty database. */
int qkv_sweep_format_make_tables(qkv_database *db, qkv_sweep_format format, qkv_error *err);

/* Whether it holds nothing of anybody's: a new file, or one whose making was cut off. */
int qkv_sweep_writer_is_blank(qkv_database *db, int *blank, qkv_error *err);

/* Fails where the database is anything else: its tables, and the format that it names. */
int qkv_sweep_format_check(qkv_database *db, qkv_sweep_format *format, qkv_error *err);
/* That, and every row. */
int qkv_sweep_format_check_rows(qkv_database *db, qkv_sweep_counts *counts, qkv_error *err);

/* An entry of the table meta as UTF-8, freed with free; NULL when there is none. */
int qkv_sweep_format_meta(qkv_database *db, const char *key, char **value, qkv_error *err);

#endif
