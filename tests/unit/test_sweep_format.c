/* Results files that others made or hold: one writer, names that are names, what is refused. */
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
    const char *path = scratch_path("writers.sqlite"), *part = sweep_file("part.sqlite");
    assert_int_equal(qkv_sweep_writer_open(&first, sweep, path, NULL, NULL), QKV_OK);
    assert_int_equal(qkv_sweep_writer_open(&second, sweep, path, NULL, &err), QKV_ERR_IO);
    expect_message(&err, "another process");
    merge_refused("writers.sqlite", &part, 1, "another process");
    assert_int_equal(qkv_sweep_writer_close(first, NULL), QKV_OK);
    assert_int_equal(qkv_sweep_writer_open(&second, sweep, path, NULL, NULL), QKV_OK);
    assert_int_equal(qkv_sweep_writer_close(second, NULL), QKV_OK);
    assert_false(scratch_exists("writers.sqlite-lock") || scratch_exists("writers.sqlite-wal"));
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
    byte = status == QKV_OK ? '+' : strstr(err.message, "another ") ? '-' : '?';
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
        assert_false(scratch_exists("together.sqlite-lock"));
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
        expect_message(&err, "No such file");
    }
    assert_int_equal(chdir(here), 0);
    free(here);
    assert_int_equal(qkv_sweep_writer_open(&results, sweep, "", NULL, &err), QKV_ERR_ARGUMENT);
    expect_message(&err, "empty");
    assert_int_equal(qkv_sweep_writer_open(&results, sweep, "/dev/null", NULL, &err), QKV_ERR_IO);
    expect_message(&err, "not a regular file");
    qkv_sweep_free(sweep);
}

static void parts_are_checked(void **state) {
    (void)state;
    static const char *const wrong[] = {"", "2", "9/3", "0/3", "-1/3", "1/0", "2/3 ", "02/3", "b"};
    qkv_sweep *sweep = sweep_of(SPEC("0.5"));
    qkv_sweep_writer *results = NULL;
    qkv_error err = {0};
    const char *path = scratch_path("parts.sqlite");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(qkv_sweep_writer_open(&results, sweep, path, wrong[i], &err),
                         QKV_ERR_ARGUMENT);
        assert_null(results);
        assert_false(scratch_exists("parts.sqlite"));
    }
    assert_int_equal(qkv_sweep_writer_open(&results, sweep, path, "3/3", &err), QKV_OK);
    assert_int_equal(qkv_sweep_writer_close(results, &err), QKV_OK);
    qkv_sweep_free(sweep);
}

/* ---- what a file may hold ---- */

/* No way of reading takes it, and nothing is left of what they began to write. */
static void refused(const char *path, const char *part) {
    qkv_sweep_reader *file = NULL;
    qkv_sweep_summary summary = QKV_SWEEP_SUMMARY_INIT;
    qkv_error err = {0};
    assert_int_not_equal(qkv_sweep_reader_open(&file, path, &err), QKV_OK);
    expect_message(&err, part);
    assert_int_not_equal(qkv_sweep_export(path, scratch_path("refused.json"), &summary, &err), 0);
    expect_message(&err, part);
    merge_refused("refused.sqlite", &path, 1, part);
    assert_false(scratch_exists("refused.json") || scratch_exists("refused.sqlite"));
}

static void what_no_sweep_makes_is_refused(void **state) {
    (void)state;
    refused(changed_sweep_file(
                "view.sqlite",
                "DROP TABLE cells; CREATE VIEW cells AS WITH RECURSIVE n(id) AS (SELECT 0 UNION"
                " ALL SELECT id + 1 FROM n) SELECT id, 0 AS prompt, 0 AS layer, 0 AS head, 'q'"
                " AS target, 'zero' AS op, NULL AS epsilon, '' AS edit FROM n"),
            "'cells' that no sweep makes");
    refused(changed_sweep_file(
                "check.sqlite",
                "DROP TABLE cells; CREATE TABLE cells(id INTEGER PRIMARY KEY, prompt INTEGER,"
                " layer INTEGER, head INTEGER, target TEXT, op TEXT, epsilon REAL AS"
                " (length(zeroblob(1000000000))), edit TEXT)"),
            "'cells' that no sweep makes");
    refused(changed_sweep_file("trigger.sqlite", "CREATE TRIGGER t AFTER INSERT ON results BEGIN"
                                                 " DELETE FROM results; END"),
            "trigger 't'");
    refused(changed_sweep_file("table.sqlite", "CREATE TABLE more(x)"), "table 'more'");
    refused(changed_sweep_file("no_view.sqlite", "DROP VIEW rows"), "no view 'rows'");
    refused(changed_sweep_file("later.sqlite",
                               "CREATE TABLE more(x);"
                               "UPDATE meta SET value = 'qkv sweep 9' WHERE key = 'format'"),
            "'qkv sweep 9'");
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
        refused(changed_sweep_file("rows.sqlite", cases[i].sql), cases[i].part);
}

/* Every child of the table's root is made the first one: 300 such levels would be more rows than
 * there are atoms, and no statement would come to an end. */
static void a_tree_that_leads_into_itself_is_refused(void **state) {
    (void)state;
    const char *path = sweep_file("tree.sqlite");
    sqlite3 *db = open_database(path);
    sqlite3_stmt *query;
    execute_sql(db, "WITH RECURSIVE n(i) AS (SELECT 12 UNION ALL SELECT i + 1 FROM n LIMIT 2000)"
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
    const char *path = changed_sweep_file(
        "strange.sqlite",
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
    assert_int_equal(json_array_size(rows), 2 * SWEEP_FILE_CELLS);
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
        cmocka_unit_test_setup(a_second_writer_is_refused, set_alarm),
        cmocka_unit_test_setup(of_those_that_start_together_one_wins, set_alarm),
        cmocka_unit_test_setup(names_are_those_of_files, set_alarm),
        cmocka_unit_test_setup(parts_are_checked, set_alarm),
        cmocka_unit_test_setup(what_no_sweep_makes_is_refused, set_alarm),
        cmocka_unit_test_setup(rows_that_no_sweep_makes_are_refused, set_alarm),
        cmocka_unit_test_setup(a_tree_that_leads_into_itself_is_refused, set_alarm),
        cmocka_unit_test_setup(exports_are_well_formed, set_alarm),
    };
    return cmocka_run_group_tests(tests, open_model, close_all);
}
