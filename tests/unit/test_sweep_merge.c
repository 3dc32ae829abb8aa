/* Merging results files: what is replaced, what is refused, and what stays. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>
#include <sqlite3.h>

#include "base/file.h"
#include "base/file_lock.h"
#include "base/temporary.h"
#include "base/text.h"
#include "qkv/sweep.h"
#include "qkv/sweep_reader.h"
#include "support/scratch.h"
#include "support/sweep_files.h"
#include "support/values.h"
#include "sweep/sweep.h"

static qkv_model *model;

static int open_model(void **state) {
    (void)state;
    return qkv_model_open(&model, QKV_TEST_MODELS "/default.gguf", NULL);
}

static int close_all(void **state) {
    qkv_model_free(model);
    return scratch_clean(state);
}

static void merge_ok(const char *out, const char *path) {
    qkv_error err;
    if (merge_into(out, &path, 1, &err) != QKV_OK) fail_msg("%s", err.message);
}

static void merge_replaces_a_killed_sweep_and_its_log(void **state) {
    (void)state;
    const char *part = sweep_file("part.sqlite");
    const double wanted = sweep_value_at(part, 0);
    killed_sweep_file("old.sqlite", "UPDATE results SET value = 77");
    merge_ok("old.sqlite", part);
    assert_true(sweep_value_at(scratch_path("old.sqlite"), 0) == wanted);
    assert_false(scratch_exists("old.sqlite-wal") || scratch_exists("old.sqlite-shm"));
    assert_false(scratch_exists("old.sqlite-lock"));
}

/* The file is there, and the log of its making holds nothing whole. */
static void merge_replaces_a_sweep_that_was_killed_at_once(void **state) {
    (void)state;
    const char *part = sweep_file("part.sqlite"), *path = scratch_path("early.sqlite");
    sqlite3 *db = open_database(path);
    execute_sql(db, "PRAGMA journal_mode = WAL");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    merge_ok("early.sqlite", part);
    assert_true(sweep_value_at(path, 0) == sweep_value_at(part, 0));
}

static void a_signal_takes_the_lock_along(void **state) {
    (void)state;
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        qkv_file_lock lock;
        const char *path = scratch_path("locked.sqlite");
        const int taken = qkv_file_lock_take(&lock, path, NULL) == QKV_OK;
        const int there = scratch_exists("locked.sqlite-lock");
        qkv_temporaries_remove(); /* as a handler does */
        _exit(taken && there ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(scratch_exists("locked.sqlite-lock"));
}

static void a_log_without_its_file_is_not_played_back(void **state) {
    (void)state;
    const char *part = sweep_file("part.sqlite");
    const double wanted = sweep_value_at(part, 0);
    assert_int_equal(unlink(killed_sweep_file("gone.sqlite", "UPDATE results SET value = 77")), 0);
    merge_ok("gone.sqlite", part);
    assert_true(sweep_value_at(scratch_path("gone.sqlite"), 0) == wanted);
    assert_false(scratch_exists("gone.sqlite-wal"));
}

static void a_part_counts_with_its_log(void **state) {
    (void)state;
    const char *part = killed_sweep_file("killed-part.sqlite", "UPDATE results SET value = 0.125");
    merge_ok("whole.sqlite", part);
    assert_true(sweep_value_at(scratch_path("whole.sqlite"), 0) == 0.125);
    assert_true(scratch_exists("killed-part.sqlite-wal")); /* it was only read */
}

static void parts_are_different_files(void **state) {
    (void)state;
    const char *part = sweep_file("part.sqlite"), *link = scratch_path("link.sqlite");
    unlink(link);
    assert_int_equal(symlink(part, link), 0);
    const char *const twice[] = {part, part}, *const linked[] = {part, link};
    merge_refused("twice.sqlite", twice, 2, "is given twice");
    merge_refused("twice.sqlite", linked, 2, "are the same file");
    assert_false(scratch_exists("twice.sqlite"));
    merge_refused("part.sqlite", &part, 1, "one of the files to merge");
    assert_true(sweep_value_at(part, 0) > 0);
    /* A copy says the same, and counts once. */
    const char *const copies[] = {part, sweep_file("copy.sqlite")};
    qkv_error err;
    assert_int_equal(merge_into("copies.sqlite", copies, 2, &err), QKV_OK);
    /* Other cells under the same hash are another sweep. */
    const char *const others[] = {part, sweep_file_of("others.sqlite", "noise", -1)};
    merge_refused("mixed.sqlite", others, 2, "another sweep");
}

static void other_databases_stay(void **state) {
    (void)state;
    char *before, *after;
    size_t n_before, n_after;
    const char *part = sweep_file("part.sqlite"), *path = scratch_path("mail.sqlite");
    unlink(path);
    sqlite3 *db = open_database(path);
    execute_sql(db,
                "PRAGMA journal_mode = WAL; CREATE TABLE letters(text); INSERT INTO letters VALUES"
                "('dear')");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(qkv_read_file(&before, &n_before, path, 1 << 20, NULL), QKV_OK);
    merge_refused("mail.sqlite", &part, 1, "letters");
    qkv_sweep *sweep = NULL;
    qkv_sweep_writer *results = NULL;
    qkv_sweep_summary summary = QKV_SWEEP_SUMMARY_INIT;
    qkv_error err = {0};
    assert_int_equal(qkv_sweep_new(&sweep, model, "{\"prompts\": \"a\", \"epsilon\": 1}", NULL), 0);
    assert_int_not_equal(qkv_sweep_writer_open(&results, sweep, path, NULL, &err), QKV_OK);
    expect_message(&err, "letters");
    qkv_sweep_free(sweep);
    assert_int_equal(rename(path, scratch_path("mail.csv")), 0);
    assert_int_not_equal(qkv_sweep_export(part, scratch_path("mail.csv"), &summary, &err), 0);
    expect_message(&err, "not written over");
    assert_int_equal(qkv_read_file(&after, &n_after, scratch_path("mail.csv"), 1 << 20, NULL), 0);
    assert_int_equal(n_before, n_after);
    assert_memory_equal(before, after, n_before);
    free(before);
    free(after);
}

static void a_file_that_is_open_elsewhere_stays(void **state) {
    (void)state;
    const char *part = sweep_file("part.sqlite");
    sqlite3 *reader =
        open_database(killed_sweep_file("held.sqlite", "UPDATE results SET value = 0.5"));
    execute_sql(reader, "SELECT count(*) FROM cells");
    merge_refused("held.sqlite", &part, 1, "open in another program");
    execute_sql(reader, "SELECT count(*) FROM results");
    assert_int_equal(sqlite3_close(reader), SQLITE_OK);
    assert_true(sweep_value_at(scratch_path("held.sqlite"), 0) == 0.5);
    merge_ok("held.sqlite", part);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(merge_replaces_a_killed_sweep_and_its_log, set_alarm),
        cmocka_unit_test_setup(merge_replaces_a_sweep_that_was_killed_at_once, set_alarm),
        cmocka_unit_test_setup(a_signal_takes_the_lock_along, set_alarm),
        cmocka_unit_test_setup(a_log_without_its_file_is_not_played_back, set_alarm),
        cmocka_unit_test_setup(a_part_counts_with_its_log, set_alarm),
        cmocka_unit_test_setup(parts_are_different_files, set_alarm),
        cmocka_unit_test_setup(other_databases_stay, set_alarm),
        cmocka_unit_test_setup(a_file_that_is_open_elsewhere_stays, set_alarm),
    };
    return cmocka_run_group_tests(tests, open_model, close_all);
}
