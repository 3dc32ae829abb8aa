/*
 * A thin layer over SQLite: every failure becomes one line that names the file.
 *
 *     qkv_database db;
 *     sqlite3_stmt *query;
 *     status = qkv_database_open(&db, path, SQLITE_OPEN_READONLY, err);
 *     status = qkv_database_prepare(&db, &query, "SELECT ...", err);
 *     while ((status = qkv_database_step(&db, query, &row, err)) == QKV_OK && row) ...
 */
#ifndef QKV_STORE_DATABASE_H
#define QKV_STORE_DATABASE_H

#include <sqlite3.h>
#include <stdint.h>

#include "base/fail.h"

typedef struct qkv_database {
    sqlite3 *handle;
    char *path;
} qkv_database;

/* Close it also after a failure. */
int qkv_database_open(qkv_database *db, const char *path, int flags, qkv_error *err);
void qkv_database_close(qkv_database *db);

/* The error of the last call, about this file. */
int qkv_database_fail(const qkv_database *db, qkv_error *err);

/* Statements without results; several separated by semicolons. */
int qkv_database_run(const qkv_database *db, const char *sql, qkv_error *err);
int qkv_database_prepare(const qkv_database *db, sqlite3_stmt **statement, const char *sql,
                         qkv_error *err);
/* *row is 1 when there is one; 0 at the end, and the statement is ready to run again. */
int qkv_database_step(const qkv_database *db, sqlite3_stmt *statement, int *row, qkv_error *err);

/* The first column of the only row, 0 without one. */
int qkv_database_number(const qkv_database *db, const char *sql, int64_t *value, qkv_error *err);
/* Likewise a text, freed with free; NULL without a row. `value` may be bound as ?1. */
int qkv_database_text(const qkv_database *db, const char *sql, const char *bound, char **value,
                      qkv_error *err);

#endif
