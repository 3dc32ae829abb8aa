/* Results files of sweeps for tests, and what others may have done to them. */
#ifndef QKV_TESTS_SWEEP_FILES_H
#define QKV_TESTS_SWEEP_FILES_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "qkv/error.h"

enum { SWEEP_FILE_CELLS = 2 * 2 * (1 + 2) }; /* of the usual file */

/* A results file in the scratch directory, with this operation and so many cells done (-1: all). */
const char *sweep_file_of(const char *name, const char *op, int64_t done);
/* The usual one. */
const char *sweep_file(const char *name);
sqlite3 *open_database(const char *path);
void execute_sql(sqlite3 *db, const char *sql);
/* The usual one after these SQL statements. */
const char *changed_sweep_file(const char *name, const char *sql);
/* As a killed sweep leaves it: what was written last is in the log. */
const char *killed_sweep_file(const char *name, const char *sql);
/* The value of `sink` in a cell. */
double sweep_value_at(const char *path, size_t cell);
int scratch_exists(const char *name);
/* One line that holds `part`. */
void expect_message(const qkv_error *err, const char *part);
/* qkv_sweep_merge into a file of the scratch directory. */
int merge_into(const char *out, const char *const *paths, size_t n, qkv_error *err);
/* The same must fail, with `part` in its message. */
void merge_refused(const char *out, const char *const *paths, size_t n, const char *part);
/* For cmocka: what hangs is ended, and has failed. */
int set_alarm(void **state);

#endif
