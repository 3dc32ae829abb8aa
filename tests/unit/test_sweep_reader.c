/* Reading the results of sweeps: rows, gaps, logs not yet merged, and what is refused. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "qkv/sweep_reader.h"
#include "support/scratch.h"
#include "support/sweep_files.h"
#include "support/sweep_maker.h"
#include "support/values.h"

static const sweep_shape SHAPE = {.layers = 2,
                                  .heads = 3,
                                  .prompts = 2,
                                  .targets = "q,v",
                                  .ops = "scale,zero",
                                  .epsilons = "1e-3,1",
                                  .metrics = "sink,kl",
                                  .done = -1};
enum { CELLS = 2 * 2 * 3 * (1 + 2 * 3) };

static const char *make(const char *name, int64_t done) {
    sweep_shape shape = SHAPE;
    shape.done = done;
    assert_true(make_sweep(scratch_path(name), &shape));
    return scratch_path(name);
}

static qkv_sweep_reader *open_ok(const char *path) {
    qkv_sweep_reader *file = NULL;
    qkv_error err = {0};
    if (qkv_sweep_reader_open(&file, path, &err) != QKV_OK) fail_msg("%s", err.message);
    return file;
}

static void test_lists(void **state) {
    (void)state;
    qkv_sweep_reader *file = open_ok(make("lists.sqlite", -1));
    const qkv_sweep_reader_info *info = qkv_sweep_reader_get_info(file);
    assert_string_equal(info->model_name, "Brook");
    assert_string_equal(info->model_path, "/models/brook.gguf");
    assert_string_equal(info->spec_hash, "ffeeddccbbaa99887766554433221100");
    assert_int_equal(info->n_prompts, 2);
    assert_int_equal(info->n_metrics, 2);
    assert_string_equal(qkv_sweep_reader_metric(file, 0), "kl"); /* by name */
    assert_string_equal(qkv_sweep_reader_metric(file, 1), "sink");
    assert_null(qkv_sweep_reader_metric(file, 2));
    assert_int_equal(info->n_targets, 3);
    assert_string_equal(qkv_sweep_reader_target(file, 0), "none"); /* as the sweep has them */
    assert_string_equal(qkv_sweep_reader_target(file, 2), "v");
    assert_int_equal(info->n_ops, 3);
    assert_string_equal(qkv_sweep_reader_op(file, 0), "");
    assert_string_equal(qkv_sweep_reader_op(file, 2), "zero");
    qkv_sweep_reader_close(file);
    qkv_sweep_reader_close(NULL);
}

static void test_rows(void **state) {
    (void)state;
    qkv_sweep_reader *file = open_ok(make("rows.sqlite", CELLS - 3));
    qkv_sweep_rows *rows;
    qkv_error err;
    assert_int_equal(qkv_sweep_reader_rows(file, "sink", &rows, &err), QKV_OK);
    assert_int_equal(qkv_sweep_rows_count(rows), CELLS);
    assert_int_equal(sweep_row(rows, 0).target, 0);
    assert_true(isnan(sweep_row(rows, 0).epsilon));
    assert_true(fabs(sweep_row(rows, 0).value - 0.2) < 1e-12);
    assert_int_equal(sweep_row(rows, 2).target, 1);
    assert_int_equal(sweep_row(rows, 2).op, 1);
    assert_true(sweep_row(rows, 2).epsilon == 1);
    assert_true(fabs(sweep_row(rows, 2).value - 0.2 / 1.01) < 1e-12);
    assert_int_equal(sweep_row(rows, CELLS - 1).prompt, 1);
    assert_int_equal(sweep_row(rows, CELLS - 1).layer, 1);
    assert_int_equal(sweep_row(rows, CELLS - 1).head, 2);
    size_t missing = 0;
    for (size_t i = 0; i < CELLS; i++) missing += (size_t)sweep_row(rows, i).missing;
    assert_int_equal(missing, 3);
    assert_true(sweep_row(rows, CELLS - 1).missing && isnan(sweep_row(rows, CELLS - 1).value));
    qkv_sweep_rows_free(rows);
    assert_int_equal(qkv_sweep_reader_rows(file, "kl", &rows, &err), QKV_OK);
    assert_true(isnan(sweep_row(rows, 0).value) &&
                !sweep_row(rows, 0).missing); /* undefined is not missing */
    qkv_sweep_rows_free(rows);
    qkv_sweep_reader_close(file);
}

/* What a running sweep has committed is seen, though it lies in the log beside the file. */
static void test_running_sweep(void **state) {
    (void)state;
    const char *path = make("running.sqlite", 0);
    sqlite3 *db = open_database(path);
    execute_sql(db, "PRAGMA journal_mode = WAL");
    execute_sql(db, "INSERT INTO results VALUES(0, 'sink', 0.75)");
    qkv_sweep_reader *file = open_ok(path);
    qkv_sweep_rows *rows;
    assert_int_equal(qkv_sweep_reader_rows(file, "sink", &rows, NULL), QKV_OK);
    assert_true(sweep_row(rows, 0).value == 0.75 && !sweep_row(rows, 0).missing &&
                sweep_row(rows, 1).missing);
    qkv_sweep_rows_free(rows);
    qkv_sweep_reader_close(file);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static size_t count_missing(qkv_sweep_reader *file, const char *metric) {
    qkv_sweep_rows *rows = NULL;
    size_t missing = 0;
    qkv_error err = {0};
    if (qkv_sweep_reader_rows(file, metric, &rows, &err) != QKV_OK) fail_msg("%s", err.message);
    assert_int_equal(qkv_sweep_rows_count(rows), CELLS);
    for (size_t i = 0; i < CELLS; i++) missing += (size_t)sweep_row(rows, i).missing;
    qkv_sweep_rows_free(rows);
    return missing;
}

/* Fills all cells, as a sweep does: through a log, which is gone when it is done. */
static void finish_sweep(const char *path) {
    sqlite3 *db = open_database(path);
    execute_sql(db, "PRAGMA journal_mode = WAL");
    execute_sql(db, "INSERT OR IGNORE INTO results SELECT id, 'kl', 0.5 FROM cells");
    execute_sql(db, "INSERT OR IGNORE INTO results SELECT id, 'sink', 0.5 FROM cells");
    execute_sql(db, "PRAGMA journal_mode = DELETE");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    char log[4096];
    snprintf(log, sizeof log, "%s-wal", path);
    assert_int_not_equal(access(log, F_OK), 0);
}

/* Opened before, between and after: what counts is what is stored when it is asked for. */
static void test_reader_follows_sweep(void **state) {
    (void)state;
    const char *path = make("followed.sqlite", 0);
    qkv_sweep_reader *from_start = open_ok(path);
    assert_int_equal(qkv_sweep_reader_get_info(from_start)->n_metrics, 0);
    assert_int_equal(count_missing(from_start, "sink"), CELLS);
    sqlite3 *db = open_database(path);
    execute_sql(db, "PRAGMA journal_mode = WAL");
    execute_sql(db, "INSERT INTO results VALUES(0, 'kl', 0.75), (0, 'sink', 0.75)");
    qkv_sweep_reader *amid = open_ok(path);
    assert_int_equal(count_missing(from_start, "sink"), CELLS - 1);
    assert_int_equal(count_missing(amid, "sink"), CELLS - 1);
    assert_int_equal(qkv_sweep_reader_get_info(from_start)->n_metrics, 2);
    assert_string_equal(qkv_sweep_reader_metric(from_start, 0), "kl");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    finish_sweep(path);
    assert_int_equal(count_missing(from_start, "sink"), 0);
    assert_int_equal(count_missing(amid, "sink"), 0);
    qkv_sweep_reader_close(from_start);
    qkv_sweep_reader_close(amid);
}

static void test_reader_of_replaced_file(void **state) {
    (void)state;
    qkv_sweep_reader *file = open_ok(make("replaced.sqlite", -1));
    sqlite3 *db = open_database(scratch_path("replaced.sqlite"));
    execute_sql(db, "UPDATE meta SET value = '00' WHERE key = 'spec_hash'");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    qkv_sweep_rows *rows;
    qkv_error err = {0};
    assert_int_equal(qkv_sweep_reader_rows(file, "sink", &rows, &err), QKV_ERR_FORMAT);
    assert_non_null(strstr(err.message, "another sweep"));
    assert_int_equal(qkv_sweep_reader_rows(NULL, "sink", &rows, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_sweep_reader_rows(file, NULL, &rows, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_sweep_reader_rows(file, "sink", NULL, NULL), QKV_ERR_ARGUMENT);
    qkv_sweep_reader_close(file);
}

/* A file that was left in WAL mode is read without anything being made beside it. */
static void test_nothing_left_behind(void **state) {
    (void)state;
    const char *path = make("with ?#% and ü.sqlite", -1);
    sqlite3 *db = open_database(path);
    execute_sql(db, "PRAGMA journal_mode = WAL");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    qkv_sweep_reader *file = open_ok(path);
    assert_int_not_equal(access(scratch_path("with ?#% and ü.sqlite-shm"), F_OK), 0);
    assert_int_not_equal(access(scratch_path("with ?#% and ü.sqlite-wal"), F_OK), 0);
    qkv_sweep_reader_close(file);
}

static void refuse(const char *path, int status, const char *part) {
    qkv_sweep_reader *file;
    qkv_error err = {0};
    assert_int_equal(qkv_sweep_reader_open(&file, path, &err), status);
    assert_null(file);
    if (!strstr(err.message, part)) fail_msg("\"%s\" lacks \"%s\"", err.message, part);
}

static const char *changed(const char *name, const char *sql) {
    const char *path = make(name, -1);
    sqlite3 *db = open_database(path);
    execute_sql(db, sql);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return path;
}

static void test_refused(void **state) {
    (void)state;
    static const char text[] = "layer,head,value\n0,0,0.5\n";
    refuse(scratch_path("none.sqlite"), QKV_ERR_IO, "No such file");
    refuse("/tmp", QKV_ERR_IO, "not a regular file");
    refuse(scratch_write("table.csv", text, sizeof text - 1), QKV_ERR_FORMAT, "not a database");
    refuse(scratch_write("empty.sqlite", "", 0), QKV_ERR_FORMAT, "not the results file of a sweep");
    refuse(changed("other.sqlite", "DELETE FROM meta"), QKV_ERR_FORMAT,
           "not the results file of a sweep");
    refuse(changed("later.sqlite", "UPDATE meta SET value = 'qkv sweep 9' WHERE key = 'format'"),
           QKV_ERR_UNSUPPORTED, "'qkv sweep 9'");
    refuse(changed("as2.sqlite", "UPDATE meta SET value = 'qkv sweep 2' WHERE key = 'format'"),
           QKV_ERR_FORMAT, "'cells' is of another format");
    refuse(changed("half.sqlite", "DROP TABLE cells"), QKV_ERR_FORMAT, "no table 'cells'");
    refuse(NULL, QKV_ERR_ARGUMENT, "path");
}

static void test_malformed_cells(void **state) {
    (void)state;
    static const char *const changes[] = {"UPDATE cells SET layer = -2 WHERE id = 5",
                                          "UPDATE cells SET head = 1000000000000 WHERE id = 5"};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        refuse(changed("malformed.sqlite", changes[i]), QKV_ERR_FORMAT, "cell 5");
    /* Also when they come while it is open. */
    sqlite3 *db = open_database(make("changing.sqlite", -1));
    execute_sql(db, "PRAGMA journal_mode = WAL; UPDATE results SET value = 0.5");
    qkv_sweep_reader *file = open_ok(scratch_path("changing.sqlite"));
    qkv_sweep_rows *rows;
    qkv_error err = {0};
    execute_sql(db, changes[0]);
    assert_int_equal(qkv_sweep_reader_rows(file, "sink", &rows, &err), QKV_ERR_FORMAT);
    assert_null(rows);
    qkv_sweep_reader_close(file);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_running_sweep),
        cmocka_unit_test(test_nothing_left_behind),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_malformed_cells),
        cmocka_unit_test(test_reader_follows_sweep),
        cmocka_unit_test(test_reader_of_replaced_file),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
