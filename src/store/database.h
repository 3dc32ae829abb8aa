/*
 * A thin layer over SQLite: every failure becomes one line that names the file, and a file is
 * trusted with nothing.
 *
 *     qkv_database db;
 *     sqlite3_stmt *query;
 *     status = qkv_database_open(&db, path, QKV_DATABASE_READ, err);
 *     status = qkv_database_prepare(&db, &query, "SELECT ...", err);
 *     while ((status = qkv_database_step(&db, query, &row, err)) == QKV_OK && row) ...
 *
 * A name is that of a file: ":memory:", "file:x?mode=memory" and the like mean nothing special, and
 * an empty name is an error. Views and triggers do not run, and a statement ends with an error
 * after more steps than a file of this size can need.
 */
#ifndef QKV_STORE_DATABASE_H
#define QKV_STORE_DATABASE_H

#include <sqlite3.h>
#include <stdint.h>

#include "base/fail.h"

typedef struct qkv_database {
    sqlite3 *handle;
    char *path;
    int64_t most_steps, steps; /* of a statement; 0: any number */
} qkv_database;

typedef enum qkv_database_mode {
    QKV_DATABASE_READ, /* also while it is written; makes nothing beside it where it can */
    QKV_DATABASE_WRITE /* made where there is none */
} qkv_database_mode;

/* Close it also after a failure. It must stay where it is while it is open. */
int qkv_database_open(qkv_database *db, const char *path, qkv_database_mode mode, qkv_error *err);
/* Another file, to be read as `part`; there is one at a time. */
int qkv_database_attach(qkv_database *db, const char *path, qkv_error *err);
void qkv_database_close(qkv_database *db);
/* Folds the log of a file of ours in, so that closing leaves one file. Where a reader holds the log, the
 * last one to close the file removes it. */
int qkv_database_fold_log(const qkv_database *db, qkv_error *err);

/* No bound on steps any more: the file was checked, or is ours alone. */
void qkv_database_trust(qkv_database *db);

/* The error of the last call, about this file. */
int qkv_database_fail(const qkv_database *db, qkv_error *err);

/* Statements without results; several separated by semicolons. */
int qkv_database_run(qkv_database *db, const char *sql, qkv_error *err);
int qkv_database_prepare(qkv_database *db, sqlite3_stmt **statement, const char *sql,
                         qkv_error *err);
/* *row is 1 when there is one; 0 at the end, and the statement is ready to run again. */
int qkv_database_step(const qkv_database *db, sqlite3_stmt *statement, int *row, qkv_error *err);

/* The first column of the only row, 0 without one. */
int qkv_database_number(qkv_database *db, const char *sql, int64_t *value, qkv_error *err);
/* Likewise a text, freed with free; NULL without a row. `value` may be bound as ?1. */
int qkv_database_text(qkv_database *db, const char *sql, const char *bound, char **value,
                      qkv_error *err);

/* Whether a file begins as SQLite's do. */
int qkv_database_is_one(const char *path);

/* Removes what SQLite keeps beside a file (-wal, -shm, -journal): for one that is not there, or is
 * about to go. */
int qkv_database_remove_logs(const char *path, qkv_error *err);
/* Whether one of these holds something. */
int qkv_database_has_log(const char *path, int *found, qkv_error *err);

#endif
