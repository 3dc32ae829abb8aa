#define _XOPEN_SOURCE 700
#include "support/sweep_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "qkv/sweep.h"
#include "qkv/sweep_reader.h"
#include "support/scratch.h"
#include "support/sweep_maker.h"
#include "support/values.h"

enum { A_MINUTE = 60 };

const char *sweep_file_of(const char *name, const char *op, int64_t done) {
    const sweep_shape shape = {.layers = 2,
                               .heads = 2,
                               .prompts = 1,
                               .targets = "q",
                               .ops = op,
                               .epsilons = "1e-3,1",
                               .metrics = "sink,tv",
                               .done = done};
    assert_true(make_sweep(scratch_path(name), &shape));
    return scratch_path(name);
}

const char *sweep_file(const char *name) {
    return sweep_file_of(name, "scale", -1);
}

sqlite3 *open_database(const char *path) {
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    return db;
}

void execute_sql(sqlite3 *db, const char *sql) {
    char *problem = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &problem) != SQLITE_OK) fail_msg("%s", problem);
}

const char *changed_sweep_file(const char *name, const char *sql) {
    sqlite3 *db = open_database(sweep_file(name));
    execute_sql(db, sql);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return scratch_path(name);
}

/* As a killed sweep leaves it: what was written last is in the log. */
const char *killed_sweep_file(const char *name, const char *sql) {
    sqlite3 *db = open_database(sweep_file(name));
    execute_sql(db, "PRAGMA journal_mode = WAL");
    execute_sql(db, sql);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    qkv_text log = {0};
    qkv_text_printf(&log, "%s-wal", name);
    assert_int_equal(access(scratch_path(log.data), F_OK), 0);
    qkv_text_release(&log);
    return scratch_path(name);
}

double sweep_value_at(const char *path, size_t cell) {
    qkv_sweep_reader *file;
    qkv_sweep_rows *rows;
    qkv_error err = {0};
    if (qkv_sweep_reader_open(&file, path, &err) != QKV_OK) fail_msg("%s", err.message);
    assert_int_equal(qkv_sweep_reader_rows(file, "sink", &rows, &err), QKV_OK);
    assert_int_equal(qkv_sweep_rows_count(rows), SWEEP_FILE_CELLS);
    const double value = sweep_row(rows, cell).value;
    qkv_sweep_rows_free(rows);
    qkv_sweep_reader_close(file);
    return value;
}

int scratch_exists(const char *name) {
    return access(scratch_path(name), F_OK) == 0;
}

void expect_message(const qkv_error *err, const char *part) {
    if (!strstr(err->message, part)) fail_msg("\"%s\" lacks \"%s\"", err->message, part);
    assert_null(strchr(err->message, '\n'));
}

/* What hangs is ended, and has failed. */
int set_alarm(void **state) {
    (void)state;
    alarm(A_MINUTE);
    return 0;
}

int merge_into(const char *out, const char *const *paths, size_t n, qkv_error *err) {
    qkv_sweep_summary summary = QKV_SWEEP_SUMMARY_INIT;
    *err = (qkv_error){0};
    return qkv_sweep_merge(scratch_path(out), paths, n, 0, &summary, err);
}

void merge_refused(const char *out, const char *const *paths, size_t n, const char *part) {
    qkv_error err;
    assert_int_not_equal(merge_into(out, paths, n, &err), QKV_OK);
    expect_message(&err, part);
}
