/* What files of results have in common; qkv/sweep.h and docs/sweeps.md describe them. */
#ifndef QKV_SWEEP_RESULTS_H
#define QKV_SWEEP_RESULTS_H

#include "qkv/sweep.h"
#include "store/database.h"

#define QKV_RESULTS_FORMAT "qkv sweep 1"

extern const char qkv_results_schema[];

/* Fails where the database is anything else. */
int qkv_results_check_format(const qkv_database *db, qkv_error *err);
/* An entry of the table meta, freed with free; NULL when there is none. */
int qkv_results_meta(const qkv_database *db, const char *key, char **value, qkv_error *err);

/* results_export.c: counts cells, rows, and cells without all of their values. */
int qkv_results_summarize(const qkv_database *db, qkv_results_summary *summary, qkv_error *err);

#endif
