/* Results files that others made, left or hold: what is refused, what is replaced, what stays. */
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
#include "support/sweep_maker.h"
#include "support/values.h"

enum { A_MINUTE = 60, CELLS = 2 * 2 * (1 + 2) }; /* of make() */

static qkv_model *model;

static int open_model(void **state) {
    (void)state;
    return qkv_model_open(&model, QKV_TEST_MODELS "/default.gguf", NULL);
}

static int close_all(void **state) {
    qkv_model_free(model);
    return scratch_clean(state);
}

/* What hangs is ended, and has failed. */
static int set_alarm(void **state) {
    (void)state;
    alarm(A_MINUTE);
    return 0;
}

/* ---- making files ---- */

static const char *make_shape(const char *name, const char *op, int64_t done) {
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

static const char *make(const char *name) {
    return make_shape(name, "scale", -1);
}

static sqlite3 *open_database(const char *path) {
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    return db;
}

static void execute(sqlite3 *db, const char *sql) {
    char *problem = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &problem) != SQLITE_OK) fail_msg("%s", problem);
}

static const char *changed(const char *name, const char *sql) {
    sqlite3 *db = open_database(make(name));
    execute(db, sql);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return scratch_path(name);
}

/* As a killed sweep leaves it: what was written last is in the log. */
static const char *killed(const char *name, const char *sql) {
    sqlite3 *db = open_database(make(name));
    execute(db, "PRAGMA journal_mode = WAL");
    execute(db, sql);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    qkv_text log = {0};
    qkv_text_printf(&log, "%s-wal", name);
    assert_int_equal(access(scratch_path(log.data), F_OK), 0);
    qkv_text_release(&log);
    return scratch_path(name);
}

static double value_at(const char *path, size_t cell) {
    qkv_sweep_reader *file;
    qkv_sweep_rows *rows;
    qkv_error err = {0};
    if (qkv_sweep_reader_open(&file, path, &err) != QKV_OK) fail_msg("%s", err.message);
    assert_int_equal(qkv_sweep_reader_rows(file, "sink", &rows, &err), QKV_OK);
    assert_int_equal(qkv_sweep_rows_count(rows), CELLS);
    const double value = sweep_row(rows, cell).value;
    qkv_sweep_rows_free(rows);
    qkv_sweep_reader_close(file);
    return value;
}

static int exists(const char *name) {
    return access(scratch_path(name), F_OK) == 0;
}

static void wants_message(const qkv_error *err, const char *part) {
    if (!strstr(err->message, part)) fail_msg("\"%s\" lacks \"%s\"", err->message, part);
    assert_null(strchr(err->message, '\n'));
}

/* ---- merge ---- */

static int merge(const char *out, const char *const *paths, size_t n, qkv_error *err) {
    qkv_sweep_summary summary = QKV_SWEEP_SUMMARY_INIT;
    *err = (qkv_error){0};
    return qkv_sweep_merge(scratch_path(out), paths, n, 0, &summary, err);
}

static void merge_ok(const char *out, const char *path) {
    qkv_error err;
    if (merge(out, &path, 1, &err) != QKV_OK) fail_msg("%s", err.message);
}

static void merge_refused(const char *out, const char *const *paths, size_t n, const char *part) {
    qkv_error err;
    assert_int_not_equal(merge(out, paths, n, &err), QKV_OK);
    wants_message(&err, part);
}

static void merge_replaces_a_killed_sweep_and_its_log(void **state) {
    (void)state;
    const char *part = make("part.sqlite");
    const double wanted = value_at(part, 0);
    killed("old.sqlite", "UPDATE results SET value = 77");
    merge_ok("old.sqlite", part);
    assert_true(value_at(scratch_path("old.sqlite"), 0) == wanted);
    assert_false(exists("old.sqlite-wal") || exists("old.sqlite-shm"));
    assert_false(exists("old.sqlite-lock"));
}

/* The file is there, and the log of its making holds nothing whole. */
static void merge_replaces_a_sweep_that_was_killed_at_once(void **state) {
    (void)state;
    const char *part = make("part.sqlite"), *path = scratch_path("early.sqlite");
    sqlite3 *db = open_database(path);
    execute(db, "PRAGMA journal_mode = WAL");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    merge_ok("early.sqlite", part);
    assert_true(value_at(path, 0) == value_at(part, 0));
}

static void a_signal_takes_the_lock_along(void **state) {
    (void)state;
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        qkv_file_lock lock;
        const char *path = scratch_path("locked.sqlite");
        const int taken = qkv_file_lock_take(&lock, path, NULL) == QKV_OK;
        const int there = exists("locked.sqlite-lock");
        qkv_temporaries_remove(); /* as a handler does */
        _exit(taken && there ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(exists("locked.sqlite-lock"));
}

static void a_log_without_its_file_is_not_played_back(void **state) {
    (void)state;
    const char *part = make("part.sqlite");
    const double wanted = value_at(part, 0);
    assert_int_equal(unlink(killed("gone.sqlite", "UPDATE results SET value = 77")), 0);
    merge_ok("gone.sqlite", part);
    assert_true(value_at(scratch_path("gone.sqlite"), 0) == wanted);
    assert_false(exists("gone.sqlite-wal"));
}

static void a_part_counts_with_its_log(void **state) {
    (void)state;
    const char *part = killed("killed-part.sqlite", "UPDATE results SET value = 0.125");
    merge_ok("whole.sqlite", part);
    assert_true(value_at(scratch_path("whole.sqlite"), 0) == 0.125);
    assert_true(exists("killed-part.sqlite-wal")); /* it was only read */
}

static void parts_are_different_files(void **state) {
    (void)state;
    const char *part = make("part.sqlite"), *link = scratch_path("link.sqlite");
    unlink(link);
    assert_int_equal(symlink(part, link), 0);
    const char *const twice[] = {part, part}, *const linked[] = {part, link};
    merge_refused("twice.sqlite", twice, 2, "is given twice");
    merge_refused("twice.sqlite", linked, 2, "are the same file");
    assert_false(exists("twice.sqlite"));
    merge_refused("part.sqlite", &part, 1, "one of the files to merge");
    assert_true(value_at(part, 0) > 0);
    /* A copy says the same, and counts once. */
    const char *const copies[] = {part, make("copy.sqlite")};
    qkv_error err;
    assert_int_equal(merge("copies.sqlite", copies, 2, &err), QKV_OK);
    /* Other cells under the same hash are another sweep. */
    const char *const others[] = {part, make_shape("others.sqlite", "noise", -1)};
    merge_refused("mixed.sqlite", others, 2, "another sweep");
}

static void other_databases_stay(void **state) {
    (void)state;
    char *before, *after;
    size_t n_before, n_after;
    const char *part = make("part.sqlite"), *path = scratch_path("mail.sqlite");
    unlink(path);
    sqlite3 *db = open_database(path);
    execute(db, "PRAGMA journal_mode = WAL; CREATE TABLE letters(text); INSERT INTO letters VALUES"
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
    wants_message(&err, "letters");
    qkv_sweep_free(sweep);
    assert_int_equal(rename(path, scratch_path("mail.csv")), 0);
    assert_int_not_equal(qkv_sweep_export(part, scratch_path("mail.csv"), &summary, &err), 0);
    wants_message(&err, "not written over");
    assert_int_equal(qkv_read_file(&after, &n_after, scratch_path("mail.csv"), 1 << 20, NULL), 0);
    assert_int_equal(n_before, n_after);
    assert_memory_equal(before, after, n_before);
    free(before);
    free(after);
}

static void a_file_that_is_open_elsewhere_stays(void **state) {
    (void)state;
    const char *part = make("part.sqlite");
    sqlite3 *reader = open_database(killed("held.sqlite", "UPDATE results SET value = 0.5"));
    execute(reader, "SELECT count(*) FROM cells");
    merge_refused("held.sqlite", &part, 1, "open in another program");
    execute(reader, "SELECT count(*) FROM results");
    assert_int_equal(sqlite3_close(reader), SQLITE_OK);
    assert_true(value_at(scratch_path("held.sqlite"), 0) == 0.5);
    merge_ok("held.sqlite", part);
}

/* ---- one writer ---- */

#define SPEC(epsilon) "{\"prompts\": [\"one two\"], \"metrics\": \"tv\", \"epsilon\": " epsilon "}"

static qkv_sweep *sweep_of(const char *spec) {
    qkv_sweep *sweep;
    assert_int_equal(qkv_sweep_new(&sweep, model, spec, NULL), QKV_OK);
    return sweep;
}

static void a_second_writer_is_refused(void **state) {
    (void)state;
    qkv_sweep *sweep = sweep_of(SPEC("0.5"));
    qkv_sweep_writer *first = NULL, *second = NULL;
    qkv_error err = {0};
    const char *path = scratch_path("writers.sqlite"), *part = make("part.sqlite");
    assert_int_equal(qkv_sweep_writer_open(&first, sweep, path, NULL, NULL), QKV_OK);
    assert_int_equal(qkv_sweep_writer_open(&second, sweep, path, NULL, &err), QKV_ERR_IO);
    wants_message(&err, "another sweep");
    merge_refused("writers.sqlite", &part, 1, "another sweep");
    assert_int_equal(qkv_sweep_writer_close(first, NULL), QKV_OK);
    assert_int_equal(qkv_sweep_writer_open(&second, sweep, path, NULL, NULL), QKV_OK);
    assert_int_equal(qkv_sweep_writer_close(second, NULL), QKV_OK);
    assert_false(exists("writers.sqlite-lock") || exists("writers.sqlite-wal"));
    qkv_sweep_free(sweep);
}

enum { STARTERS = 6, ROUNDS = 12 };

/* Opens when `go` closes, says how it went, and holds the file until `end` closes. */
static void start_one(const qkv_sweep *sweep, const char *path, int go, int said, int end) {
    char byte;
    qkv_sweep_writer *results = NULL;
    qkv_error err = {0};
    if (read(go, &byte, 1) != 0) _exit(1);
    const int status = qkv_sweep_writer_open(&results, sweep, path, NULL, &err);
    byte = status == QKV_OK ? '+' : strstr(err.message, "another sweep") ? '-' : '?';
    if (byte == '?') fprintf(stderr, "%s\n", err.message);
    if (write(said, &byte, 1) != 1 || read(end, &byte, 1) != 0) _exit(1);
    _exit(qkv_sweep_writer_close(results, NULL) == QKV_OK ? 0 : 1);
}

static void start_together(qkv_sweep *const sweeps[2], const char *path) {
    int go[2], said[2], end[2], wins = 0, status;
    assert_true(pipe(go) == 0 && pipe(said) == 0 && pipe(end) == 0);
    for (int i = 0; i < STARTERS; i++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child) continue;
        close(go[1]);
        close(end[1]);
        start_one(sweeps[i % 2], path, go[0], said[1], end[0]);
    }
    close(go[1]);
    for (int i = 0; i < STARTERS; i++) {
        char byte = 0;
        assert_int_equal(read(said[0], &byte, 1), 1);
        assert_int_not_equal(byte, '?');
        wins += byte == '+';
    }
    close(end[1]);
    for (int i = 0; i < STARTERS; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    const int open_ends[] = {go[0], end[0], said[0], said[1]};
    for (int i = 0; i < 4; i++) close(open_ends[i]);
    assert_int_equal(wins, 1);
}

static void of_those_that_start_together_one_wins(void **state) {
    (void)state;
    qkv_sweep *one = sweep_of(SPEC("0.5")), *other = sweep_of(SPEC("0.25"));
    qkv_sweep *const same[2] = {one, one}, *const different[2] = {one, other};
    const char *path = scratch_path("together.sqlite");
    for (int round = 0; round < ROUNDS; round++) {
        qkv_sweep_reader *file = NULL;
        qkv_error err = {0};
        start_together(round % 2 ? different : same, path);
        if (qkv_sweep_reader_open(&file, path, &err) != QKV_OK) fail_msg("%s", err.message);
        qkv_sweep_reader_close(file);
        assert_false(exists("together.sqlite-lock"));
        assert_int_equal(unlink(path), 0);
    }
    qkv_sweep_free(one);
    qkv_sweep_free(other);
}

static void names_are_those_of_files(void **state) {
    (void)state;
    static const char *const names[] = {":memory:", "file:x.sqlite?mode=memory", "file::memory:"};
    qkv_sweep *sweep = sweep_of(SPEC("0.5"));
    qkv_sweep_writer *results = NULL;
    qkv_error err = {0};
    char *here = getcwd(NULL, 0);
    assert_int_equal(chdir(scratch_path(".")), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        qkv_sweep_reader *file = NULL;
        assert_int_equal(qkv_sweep_writer_open(&results, sweep, names[i], NULL, NULL), QKV_OK);
        assert_int_equal(qkv_sweep_writer_close(results, NULL), QKV_OK);
        assert_int_equal(access(names[i], F_OK), 0);
        assert_int_equal(qkv_sweep_reader_open(&file, names[i], NULL), QKV_OK);
        qkv_sweep_reader_close(file);
        assert_int_equal(unlink(names[i]), 0);
        assert_int_equal(qkv_sweep_reader_open(&file, names[i], &err), QKV_ERR_IO);
        wants_message(&err, "No such file");
    }
    assert_int_equal(chdir(here), 0);
    free(here);
    assert_int_equal(qkv_sweep_writer_open(&results, sweep, "", NULL, &err), QKV_ERR_ARGUMENT);
    wants_message(&err, "empty");
    assert_int_equal(qkv_sweep_writer_open(&results, sweep, "/dev/null", NULL, &err), QKV_ERR_IO);
    wants_message(&err, "not a regular file");
    qkv_sweep_free(sweep);
}

/* ---- what a file may hold ---- */

/* No way of reading takes it, and nothing is left of what they began to write. */
static void refused(const char *path, const char *part) {
    qkv_sweep_reader *file = NULL;
    qkv_sweep_summary summary = QKV_SWEEP_SUMMARY_INIT;
    qkv_error err = {0};
    assert_int_not_equal(qkv_sweep_reader_open(&file, path, &err), QKV_OK);
    wants_message(&err, part);
    assert_int_not_equal(qkv_sweep_export(path, scratch_path("refused.json"), &summary, &err), 0);
    wants_message(&err, part);
    merge_refused("refused.sqlite", &path, 1, part);
    assert_false(exists("refused.json") || exists("refused.sqlite"));
}

static void what_no_sweep_makes_is_refused(void **state) {
    (void)state;
    refused(changed("view.sqlite",
                    "DROP TABLE cells; CREATE VIEW cells AS WITH RECURSIVE n(id) AS (SELECT 0 UNION"
                    " ALL SELECT id + 1 FROM n) SELECT id, 0 AS prompt, 0 AS layer, 0 AS head, 'q'"
                    " AS target, 'zero' AS op, NULL AS epsilon, '' AS edit FROM n"),
            "'cells' that no sweep makes");
    refused(changed("check.sqlite",
                    "DROP TABLE cells; CREATE TABLE cells(id INTEGER PRIMARY KEY, prompt INTEGER,"
                    " layer INTEGER, head INTEGER, target TEXT, op TEXT, epsilon REAL AS"
                    " (length(zeroblob(1000000000))), edit TEXT)"),
            "'cells' that no sweep makes");
    refused(changed("trigger.sqlite", "CREATE TRIGGER t AFTER INSERT ON results BEGIN"
                                      " DELETE FROM results; END"),
            "trigger 't'");
    refused(changed("table.sqlite", "CREATE TABLE more(x)"), "table 'more'");
    refused(changed("no_view.sqlite", "DROP VIEW rows"), "no view 'rows'");
    refused(changed("later.sqlite", "CREATE TABLE more(x);"
                                    "UPDATE meta SET value = 'qkv sweep 2' WHERE key = 'format'"),
            "'qkv sweep 2'");
}

static void rows_that_no_sweep_makes_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *sql, *part;
    } cases[] = {
        {"UPDATE cells SET id = 500 WHERE id = 5", "cell 5"},
        {"UPDATE cells SET prompt = 1 WHERE id = 5", "cell 5"},
        {"UPDATE cells SET layer = 'deep' WHERE id = 5", "cell 5"},
        {"UPDATE cells SET head = -2 WHERE id = 5", "cell 5"},
        {"UPDATE cells SET target = NULL WHERE id = 5", "cell 5"},
        {"UPDATE cells SET op = 'a' || char(10) || 'b' WHERE id = 5", "cell 5"},
        {"UPDATE cells SET op = CAST(x'FF41' AS TEXT) WHERE id = 5", "cell 5"},
        {"UPDATE cells SET op = CAST(x'410041' AS TEXT) WHERE id = 5", "cell 5"},
        {"UPDATE cells SET op = printf('%300s', 'x') WHERE id = 5", "cell 5"},
        {"UPDATE cells SET epsilon = 9e999 WHERE id = 5", "cell 5"},
        {"UPDATE cells SET epsilon = 'small' WHERE id = 5", "cell 5"},
        {"UPDATE prompts SET id = 3", "prompt 0"},
        {"UPDATE prompts SET text = x'00'", "prompt 0"},
        {"UPDATE results SET metric = 'a' || char(7) WHERE cell = 0 AND metric = 'tv'", "result 0"},
        {"UPDATE results SET value = 'much' WHERE cell = 0", "result 0"},
        {"INSERT INTO results VALUES(12345, 'tv', 0)", "is malformed"},
        {"UPDATE meta SET value = x'41' WHERE key = 'model_name'", "row of meta"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(changed("rows.sqlite", cases[i].sql), cases[i].part);
}

/* Every child of the table's root is made the first one: 300 such levels would be more rows than
 * there are atoms, and no statement would come to an end. */
static void a_tree_that_leads_into_itself_is_refused(void **state) {
    (void)state;
    const char *path = make("tree.sqlite");
    sqlite3 *db = open_database(path);
    sqlite3_stmt *query;
    execute(db, "WITH RECURSIVE n(i) AS (SELECT 12 UNION ALL SELECT i + 1 FROM n LIMIT 2000)"
                " INSERT INTO cells SELECT i, 0, 0, 0, 'q', 'zero', NULL, '' FROM n");
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT rootpage, page_size FROM sqlite_schema,"
                                        " pragma_page_size WHERE name = 'cells'",
                                        -1, &query, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(query), SQLITE_ROW);
    const long at = (sqlite3_column_int(query, 0) - 1) * (long)sqlite3_column_int(query, 1);
    sqlite3_finalize(query);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    char *data;
    size_t size;
    assert_int_equal(qkv_read_file(&data, &size, path, 1 << 20, NULL), QKV_OK);
    const unsigned char *page = (unsigned char *)data + at;
    assert_int_equal(page[0], 5); /* the inside of a table's tree */
    const int n = page[3] << 8 | page[4];
    assert_true(n > 3);
    const unsigned char *first = page + (page[12] << 8 | page[13]);
    for (int i = 1; i < n; i++)
        memcpy(data + at + (page[12 + 2 * i] << 8 | page[13 + 2 * i]), first, 4);
    refused(scratch_write("tree.sqlite", data, size), "is malformed");
    free(data);
}

/* ---- exports ---- */

static char *export(const char *path, const char *name) {
    qkv_sweep_summary summary = QKV_SWEEP_SUMMARY_INIT;
    qkv_error err = {0};
    char *text;
    size_t size;
    if (qkv_sweep_export(path, scratch_path(name), &summary, &err) != QKV_OK)
        fail_msg("%s", err.message);
    assert_int_equal(qkv_read_file(&text, &size, scratch_path(name), 1 << 20, NULL), QKV_OK);
    assert_int_equal(strlen(text), size);
    return text;
}

static void exports_are_well_formed(void **state) {
    (void)state;
    const char *path =
        changed("strange.sqlite",
                "UPDATE cells SET op = 'a\"b\\,c'; UPDATE results SET metric = 'x\"' || cell,"
                " value = 9e999 WHERE metric = 'sink';"
                "UPDATE meta SET value = CAST(x'41FF0A22' AS TEXT) WHERE key = 'model_name';"
                "INSERT INTO meta VALUES(CAST(x'42FE' AS TEXT), 'odd');"
                "UPDATE prompts SET text = CAST(x'C3280A225C' AS TEXT)");
    char *json = export(path, "strange.json"), *csv = export(path, "strange.csv");
    json_error_t problem;
    json_t *all = json_loads(json, JSON_REJECT_DUPLICATES, &problem);
    if (!all) fail_msg("line %d: %s", problem.line, problem.text);
    const json_t *rows = json_object_get(all, "rows"), *row = json_array_get(rows, 1);
    assert_int_equal(json_array_size(rows), 2 * CELLS);
    assert_string_equal(json_string_value(json_object_get(row, "op")), "a\"b\\,c");
    assert_string_equal(json_string_value(json_object_get(row, "metric")), "x\"0");
    assert_true(json_is_null(json_object_get(row, "value")));
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(all, "meta"), "model_name")),
        "A\\xFF\\n\"");
    assert_non_null(strstr(csv, "\n0,0,0,none,\"a\"\"b\\,c\",,\"x\"\"0\",inf\n"));
    json_decref(all);
    free(json);
    free(csv);
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
        cmocka_unit_test_setup(a_second_writer_is_refused, set_alarm),
        cmocka_unit_test_setup(of_those_that_start_together_one_wins, set_alarm),
        cmocka_unit_test_setup(names_are_those_of_files, set_alarm),
        cmocka_unit_test_setup(what_no_sweep_makes_is_refused, set_alarm),
        cmocka_unit_test_setup(rows_that_no_sweep_makes_are_refused, set_alarm),
        cmocka_unit_test_setup(a_tree_that_leads_into_itself_is_refused, set_alarm),
        cmocka_unit_test_setup(exports_are_well_formed, set_alarm),
    };
    return cmocka_run_group_tests(tests, open_model, close_all);
}
