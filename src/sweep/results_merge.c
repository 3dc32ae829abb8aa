/*
 * Files of one sweep made one: the shards of a job array. They must agree in specification, model
 * and, where two hold the same cell, in its values.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "sweep/results.h"

static int attach(const qkv_database *db, const char *path, qkv_error *err) {
    /* Opened alone first: attaching would make a file that is not there. */
    qkv_database input;
    int row, status = qkv_database_open(&input, path, SQLITE_OPEN_READONLY, err);
    if (status == QKV_OK) status = qkv_results_check_format(&input, err);
    qkv_database_close(&input);
    sqlite3_stmt *statement = NULL;
    if (status == QKV_OK) status = qkv_database_prepare(db, &statement, "ATTACH ?1 AS part", err);
    if (status == QKV_OK) {
        sqlite3_bind_text(statement, 1, path, -1, SQLITE_STATIC);
        status = qkv_database_step(db, statement, &row, err);
    }
    sqlite3_finalize(statement);
    return status;
}

static int check_same(const qkv_database *db, const char *path, const char *first, qkv_error *err) {
    int64_t different = 0;
    int status = qkv_database_number(
        db,
        "SELECT count(*) FROM (SELECT key, value FROM main.meta EXCEPT SELECT key, value FROM"
        " part.meta) WHERE key IN ('spec_hash', 'model_hash')",
        &different, err);
    if (status == QKV_OK && different)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%s is of another sweep or model than %s", path,
                        first);
    if (status == QKV_OK)
        status = qkv_database_number(db,
                                     "SELECT count(*) FROM main.results AS a JOIN part.results AS b"
                                     " USING (cell, metric) WHERE a.value IS NOT b.value",
                                     &different, err);
    if (status == QKV_OK && different)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "%s has other values than the files before it in %lld rows: they were "
                        "computed in another way",
                        path, (long long)different);
    return status;
}

static int add_part(const qkv_database *db, const char *path, const char *first, qkv_error *err) {
    int status = attach(db, path, err);
    if (status != QKV_OK) return status;
    if (path == first)
        status = qkv_database_run(db,
                                  "INSERT INTO main.meta SELECT * FROM part.meta WHERE key <> "
                                  "'shard'; INSERT INTO main.prompts SELECT * FROM part.prompts;"
                                  "INSERT INTO main.cells SELECT * FROM part.cells",
                                  err);
    else
        status = check_same(db, path, first, err);
    if (status == QKV_OK)
        status = qkv_database_run(
            db, "INSERT OR IGNORE INTO main.results SELECT * FROM part.results", err);
    if (status != QKV_OK) return status;
    return qkv_database_run(db, "DETACH part", err);
}

static int check_missing(const qkv_database *db, int partial, qkv_results_summary *summary,
                         qkv_error *err) {
    int status = qkv_results_summarize(db, summary, err);
    if (status != QKV_OK || partial || !summary->n_missing) return status;
    char *edit = NULL;
    status = qkv_database_text(db,
                               "SELECT edit || ' of prompt ' || prompt FROM cells WHERE NOT EXISTS"
                               " (SELECT 1 FROM results WHERE cell = id) ORDER BY id LIMIT 1",
                               NULL, &edit, err);
    if (status == QKV_OK)
        status =
            qkv_fail(err, QKV_ERR_ARGUMENT,
                     "%lld of %lld cells are missing, the first is %s; finish the shards, or "
                     "merge what is there with --partial",
                     (long long)summary->n_missing, (long long)summary->n_cells, edit ? edit : "?");
    free(edit);
    return status;
}

static int fill(const char *temporary, const char *const *paths, size_t n, int partial,
                qkv_results_summary *summary, qkv_error *err) {
    qkv_database db;
    int status = qkv_database_open(&db, temporary, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
    /* Nobody sees the file before it is whole. */
    if (status == QKV_OK)
        status = qkv_database_run(&db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=NORMAL", err);
    if (status == QKV_OK) status = qkv_database_run(&db, qkv_results_schema, err);
    for (size_t i = 0; i < n && status == QKV_OK; i++)
        status = add_part(&db, paths[i], paths[0], err);
    if (status == QKV_OK) status = check_missing(&db, partial, summary, err);
    qkv_database_close(&db);
    return status;
}

int qkv_results_merge(const char *out, const char *const *paths, size_t n, int partial,
                      qkv_results_summary *summary, qkv_error *err) {
    if (n == 0) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is nothing to merge");
    qkv_text temporary = {0};
    qkv_text_printf(&temporary, "%s.merging", out);
    if (temporary.failed) return qkv_fail_memory(err);
    remove(temporary.data);
    int status = fill(temporary.data, paths, n, partial, summary, err);
    if (status == QKV_OK && rename(temporary.data, out) != 0)
        status = qkv_fail(err, QKV_ERR_IO, "cannot write %s", out);
    if (status != QKV_OK) remove(temporary.data);
    qkv_text_release(&temporary);
    return status;
}
