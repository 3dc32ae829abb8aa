#include "store/database.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Another process may hold the file for a moment, e.g. to read it. */
enum { PATIENCE_MS = 20000 };

int qkv_database_fail(const qkv_database *db, qkv_error *err) {
    int code = db->handle ? sqlite3_errcode(db->handle) : SQLITE_NOMEM;
    if (code == SQLITE_NOMEM) return qkv_fail_memory(err);
    if (code == SQLITE_NOTADB)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s is not a file of results: no SQLite database",
                        db->path);
    return qkv_fail(err, QKV_ERR_IO, "%s: %s", db->path, sqlite3_errmsg(db->handle));
}

int qkv_database_open(qkv_database *db, const char *path, int flags, qkv_error *err) {
    *db = (qkv_database){.path = qkv_strdup(path)};
    if (!db->path) return qkv_fail_memory(err);
    if (sqlite3_open_v2(path, &db->handle, flags, NULL) != SQLITE_OK)
        return qkv_database_fail(db, err);
    sqlite3_busy_timeout(db->handle, PATIENCE_MS);
    return QKV_OK;
}

void qkv_database_close(qkv_database *db) {
    sqlite3_close_v2(db->handle);
    free(db->path);
    *db = (qkv_database){0};
}

int qkv_database_run(const qkv_database *db, const char *sql, qkv_error *err) {
    if (sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK) return QKV_OK;
    return qkv_database_fail(db, err);
}

int qkv_database_prepare(const qkv_database *db, sqlite3_stmt **statement, const char *sql,
                         qkv_error *err) {
    if (sqlite3_prepare_v2(db->handle, sql, -1, statement, NULL) == SQLITE_OK) return QKV_OK;
    return qkv_database_fail(db, err);
}

int qkv_database_step(const qkv_database *db, sqlite3_stmt *statement, int *row, qkv_error *err) {
    int code = sqlite3_step(statement);
    *row = code == SQLITE_ROW;
    if (*row) return QKV_OK;
    int status = code == SQLITE_DONE ? QKV_OK : qkv_database_fail(db, err);
    sqlite3_reset(statement);
    return status;
}

int qkv_database_number(const qkv_database *db, const char *sql, int64_t *value, qkv_error *err) {
    sqlite3_stmt *query = NULL;
    int row = 0;
    *value = 0;
    int status = qkv_database_prepare(db, &query, sql, err);
    if (status == QKV_OK) status = qkv_database_step(db, query, &row, err);
    if (row) *value = sqlite3_column_int64(query, 0);
    sqlite3_finalize(query);
    return status;
}

int qkv_database_text(const qkv_database *db, const char *sql, const char *bound, char **value,
                      qkv_error *err) {
    sqlite3_stmt *query = NULL;
    int row = 0;
    *value = NULL;
    int status = qkv_database_prepare(db, &query, sql, err);
    if (status == QKV_OK && bound) sqlite3_bind_text(query, 1, bound, -1, SQLITE_STATIC);
    if (status == QKV_OK) status = qkv_database_step(db, query, &row, err);
    const char *text = row ? (const char *)sqlite3_column_text(query, 0) : NULL;
    if (text && !(*value = qkv_strdup(text))) status = qkv_fail_memory(err);
    sqlite3_finalize(query);
    return status;
}
