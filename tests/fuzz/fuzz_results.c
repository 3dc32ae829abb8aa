/*
 * Fuzzer: a results file of a sweep. The bytes are the file where they begin as SQLite's do;
 * otherwise they are SQL that is run on a good one, which gets further than changed bytes.
 *
 * What is accepted must export as well-formed CSV and JSON, and merge into a file that is accepted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <sqlite3.h>

#include "base/file.h"
#include "base/memory.h"
#include "harness.h"
#include "qkv/model.h"
#include "qkv/sweep.h"
#include "qkv/sweep_reader.h"
#include "support/sweep_maker.h"
#include "support/values.h"
#include "sweep/sweep.h"

enum { MOST_STEPS = 20000, LONGEST_VALUE = 20000, LARGEST = 64 << 20 };

static char input[320], output[320];

static const char *path_of(char path[320], const char *name) {
    snprintf(path, 320, "%s/%s", fuzz_directory(), name);
    return path;
}

/* ---- SQL ---- */

static int give_up(void *steps) {
    return ++*(int *)steps > MOST_STEPS / 100;
}

static int allow(void *user, int action, const char *a, const char *b, const char *c,
                 const char *d) {
    (void)user, (void)a, (void)b, (void)c, (void)d;
    return action == SQLITE_ATTACH || action == SQLITE_DETACH ? SQLITE_DENY : SQLITE_OK;
}

static void put_good_file(void) {
    static const sweep_shape shape = {.layers = 1,
                                      .heads = 2,
                                      .prompts = 2,
                                      .targets = "q",
                                      .ops = "scale",
                                      .epsilons = "0.5",
                                      .metrics = "sink,kl",
                                      .done = 5};
    static char *good; /* made once */
    static size_t size;
    fuzz_put("in.sqlite", good ? good : "", size);
    if (good) return;
    FUZZ_REQUIRE(make_sweep(input, &shape));
    FUZZ_REQUIRE(qkv_read_file(&good, &size, input, LARGEST, NULL) == QKV_OK);
}

static void change(const uint8_t *data, size_t size) {
    sqlite3 *db = NULL;
    int steps = 0;
    char *sql = qkv_strndup((const char *)data, size);
    FUZZ_REQUIRE(sql);
    put_good_file();
    FUZZ_REQUIRE(sqlite3_open(input, &db) == SQLITE_OK);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, LONGEST_VALUE);
    sqlite3_set_authorizer(db, allow, NULL);
    sqlite3_progress_handler(db, 100, give_up, &steps);
    sqlite3_exec(db, "PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY", NULL, NULL, NULL);
    sqlite3_exec(db, sql, NULL, NULL, NULL);
    /* Whatever it set: one file, without a log. */
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    sqlite3_exec(db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    sqlite3_close(db);
    free(sql);
}

/* ---- what must hold ---- */

static size_t read_all(void) {
    qkv_sweep_reader *file = NULL;
    qkv_error err = {0};
    const int status = qkv_sweep_reader_open(&file, input, &err);
    fuzz_check_status(status, file, &err);
    if (status != QKV_OK) return 0;
    const char *metric;
    for (size_t i = 0; i < 4 && (metric = qkv_sweep_reader_metric(file, i)); i++) {
        qkv_sweep_rows *rows = NULL;
        FUZZ_REQUIRE(qkv_sweep_reader_rows(file, metric, &rows, NULL) == QKV_OK);
        for (size_t k = 0; k < qkv_sweep_rows_count(rows); k++) {
            FUZZ_REQUIRE(qkv_sweep_reader_target(file, (size_t)sweep_row(rows, k).target));
            FUZZ_REQUIRE(qkv_sweep_reader_op(file, (size_t)sweep_row(rows, k).op));
        }
        qkv_sweep_rows_free(rows);
    }
    /* Tokens are text that was not checked before: there are some, or there is a reason. */
    for (int64_t i = 0; i < 3; i++) {
        int32_t *tokens = NULL;
        size_t n = 0;
        const int found = qkv_sweep_reader_prompt(file, i, &tokens, &n, &err);
        FUZZ_REQUIRE(found == QKV_OK ? tokens && n > 0 : tokens == NULL && err.message[0]);
        qkv_tokens_free(tokens);
    }
    qkv_sweep_reader_close(file);
    return 1;
}

static char *export(const char *name, int accepted, qkv_sweep_summary *summary) {
    qkv_error err = {0};
    char *text = NULL;
    size_t size = 0;
    const int status = qkv_sweep_export(input, path_of(output, name), summary, &err);
    FUZZ_REQUIRE((status == QKV_OK) == accepted);
    fuzz_check_status(status, accepted ? summary : NULL, &err);
    if (!accepted) return NULL;
    FUZZ_REQUIRE(qkv_read_file(&text, &size, output, LARGEST, NULL) == QKV_OK);
    FUZZ_REQUIRE(strlen(text) == size);
    return text;
}

static void check_json(const char *text, const qkv_sweep_summary *summary) {
    json_t *all = json_loads(text, 0, NULL);
    FUZZ_REQUIRE(all);
    FUZZ_REQUIRE(json_array_size(json_object_get(all, "rows")) == (size_t)summary->n_rows);
    json_decref(all);
}

/* Eight fields on every line; quotes around a whole field or doubled inside one. */
static void check_csv(const char *text, const qkv_sweep_summary *summary) {
    int64_t lines = 0;
    int fields = 1;
    for (const char *at = text; *at; at++) {
        if (*at == '"') {
            for (at++; *at && (*at != '"' || at[1] == '"'); at++) at += *at == '"';
            FUZZ_REQUIRE(*at == '"' && (at[1] == ',' || at[1] == '\n'));
        } else if (*at == ',') {
            fields++;
        } else if (*at == '\n') {
            FUZZ_REQUIRE(fields == 8);
            fields = 1;
            lines++;
        }
    }
    FUZZ_REQUIRE(lines == summary->n_rows + 1);
}

static void check_merge(int accepted) {
    qkv_sweep_summary summary = QKV_SWEEP_SUMMARY_INIT;
    qkv_error err = {0};
    const char *const part = input;
    fuzz_put("out.sqlite", NULL, 0);
    path_of(output, "out.sqlite");
    int status = qkv_sweep_merge(output, &part, 1, 1, &summary, &err);
    FUZZ_REQUIRE((status == QKV_OK) == accepted);
    fuzz_check_status(status, accepted ? &summary : NULL, &err);
    if (!accepted) return;
    qkv_sweep_reader *file = NULL;
    FUZZ_REQUIRE(qkv_sweep_reader_open(&file, output, NULL) == QKV_OK);
    qkv_sweep_reader_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    qkv_sweep_summary summary = QKV_SWEEP_SUMMARY_INIT;
    if (!input[0]) { /* their names are known to the harness, which removes them */
        path_of(input, "in.sqlite");
        fuzz_put("out.json", "", 0);
        fuzz_put("out.csv", "", 0);
        fuzz_put("out.sqlite", "", 0);
    }
    if (size >= 16 && memcmp(data, "SQLite format 3", 16) == 0)
        fuzz_put("in.sqlite", data, size);
    else
        change(data, size);
    const int accepted = read_all() != 0;
    char *json = export("out.json", accepted, &summary), *csv = NULL;
    if (json) check_json(json, &summary);
    csv = export("out.csv", accepted, &summary);
    if (csv) check_csv(csv, &summary);
    check_merge(accepted);
    free(json);
    free(csv);
    return 0;
}
