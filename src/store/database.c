#define _POSIX_C_SOURCE 200809L
#include "store/database.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

/* Another process may hold the file for a moment, e.g. to read it. */
enum { PATIENCE_MS = 20000 };

/* Statements take some ten steps for a row, and a row some ten bytes. */
enum { STEPS_ALWAYS = 1000000, STEPS_PER_BYTE = 100, STEPS_BETWEEN = 1000 };

int qkv_database_fail(const qkv_database *db, qkv_error *err) {
    const int code = db->handle ? sqlite3_errcode(db->handle) : SQLITE_NOMEM;
    const char *said = db->handle ? sqlite3_errmsg(db->handle) : "";
    switch (code) {
    case SQLITE_NOMEM:
        return qkv_fail_memory(err);
    case SQLITE_INTERRUPT:
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s is malformed: it takes more steps than a file of its size can need",
                        db->path);
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
    case SQLITE_TOOBIG:
    case SQLITE_ERROR: /* no such table or column */
        return qkv_fail(err, QKV_ERR_FORMAT, "%s is not a results file: %s", db->path, said);
    case SQLITE_READONLY:
        if (sqlite3_extended_errcode(db->handle) == SQLITE_READONLY_ROLLBACK)
            return qkv_fail(err, QKV_ERR_IO,
                            "%s was left in the middle of a write; start its work again first",
                            db->path);
        break;
    default:
        break;
    }
    return qkv_fail(err, QKV_ERR_IO, "%s: %s", db->path, said);
}

/* ---- names ---- */

/* A path as SQLite's kind of URI, in which nothing is special. */
static void append_uri(qkv_text *uri, const char *path) {
    qkv_text_puts(uri, path[0] == '/' ? "file://" : "file:./");
    for (const char *c = path; *c; c++) {
        if (qkv_is_letter(*c) || strchr("0123456789/._-", *c)) {
            qkv_text_append(uri, c, 1);
        } else {
            qkv_text_printf(uri, "%%%02X", (unsigned char)*c);
        }
    }
}

static const char *const suffixes[] = {"-wal", "-journal", "-shm"};
enum { N_LOGS = 2, N_SUFFIXES = 3 }; /* the last one holds nothing by itself */

static int64_t size_of(const char *path, const char *suffix, qkv_text *name) {
    struct stat facts;
    name->length = 0;
    qkv_text_printf(name, "%s%s", path, suffix);
    return !name->failed && stat(name->data, &facts) == 0 ? (int64_t)facts.st_size : 0;
}

int qkv_database_has_log(const char *path, int *found, qkv_error *err) {
    qkv_text name = {0};
    *found = 0;
    for (int i = 0; i < N_LOGS; i++) *found |= size_of(path, suffixes[i], &name) > 0;
    const int failed = name.failed;
    qkv_text_release(&name);
    return failed ? qkv_fail_memory(err) : QKV_OK;
}

int qkv_database_remove_logs(const char *path, qkv_error *err) {
    int status = QKV_OK;
    for (int i = 0; i < N_SUFFIXES && status == QKV_OK; i++) {
        qkv_text name = {0};
        qkv_text_printf(&name, "%s%s", path, suffixes[i]);
        if (name.failed) {
            status = qkv_fail_memory(err);
        } else if (unlink(name.data) != 0 && errno != ENOENT) {
            status = qkv_fail(err, QKV_ERR_IO, "cannot remove %s: %s", name.data, strerror(errno));
        }
        qkv_text_release(&name);
    }
    return status;
}

int qkv_database_is_one(const char *path) {
    static const char magic[16] = "SQLite format 3";
    char head[sizeof magic];
    FILE *file = fopen(path, "rb");
    if (!file) return 0;
    const size_t n = fread(head, 1, sizeof head, file);
    fclose(file);
    return n == sizeof head && memcmp(head, magic, sizeof head) == 0;
}

/* Where there is no log the file is all there is: it is then opened as one that does not change,
 * which works on read-only disks and leaves no other files. */
static int read_uri(qkv_text *uri, const char *path, qkv_error *err) {
    int logged = 0;
    const int status = qkv_database_has_log(path, &logged, err);
    append_uri(uri, path);
    qkv_text_puts(uri, logged ? "?mode=ro" : "?immutable=1&mode=ro");
    return status;
}

static int check_name(const char *path, qkv_database_mode mode, qkv_error *err) {
    struct stat facts;
    if (!path[0]) return qkv_fail(err, QKV_ERR_ARGUMENT, "the name of a file is empty");
    if (stat(path, &facts) == 0) {
        if (!S_ISREG(facts.st_mode))
            return qkv_fail(err, QKV_ERR_IO, "cannot open %s: it is not a regular file", path);
        /* SQLite would open it for reading alone, and say so much later. */
        if (mode == QKV_DATABASE_WRITE && access(path, W_OK) != 0)
            return qkv_fail(err, QKV_ERR_IO, "cannot write %s: %s", path, strerror(errno));
        return QKV_OK;
    }
    if (mode == QKV_DATABASE_WRITE && errno == ENOENT) return QKV_OK;
    return qkv_fail(err, QKV_ERR_IO, "cannot open %s: %s", path, strerror(errno));
}

/* ---- bounds ---- */

static int count_steps(void *user) {
    qkv_database *db = user;
    db->steps += STEPS_BETWEEN;
    return db->most_steps && db->steps > db->most_steps;
}

/* For every statement anew: a file that is read may grow. */
static void start_counting(qkv_database *db) {
    db->steps = 0;
    if (!db->most_steps) return;
    qkv_text name = {0};
    const int64_t size = size_of(db->path, "", &name) + size_of(db->path, "-wal", &name);
    db->most_steps = STEPS_ALWAYS + STEPS_PER_BYTE * size;
    qkv_text_release(&name);
}

void qkv_database_trust(qkv_database *db) {
    db->most_steps = 0;
}

/* Our own statements need little; a file that needs more is not ours. */
static void distrust(qkv_database *db) {
    static const struct {
        int what, most;
    } limits[] = {{SQLITE_LIMIT_SQL_LENGTH, 10000}, {SQLITE_LIMIT_COLUMN, 32},
                  {SQLITE_LIMIT_EXPR_DEPTH, 50},    {SQLITE_LIMIT_ATTACHED, 1},
                  {SQLITE_LIMIT_TRIGGER_DEPTH, 1},  {SQLITE_LIMIT_COMPOUND_SELECT, 4},
                  {SQLITE_LIMIT_WORKER_THREADS, 0}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        sqlite3_limit(db->handle, limits[i].what, limits[i].most);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_progress_handler(db->handle, STEPS_BETWEEN, count_steps, db);
}

/* ---- opening ---- */

static int open_uri(qkv_database *db, const char *uri, qkv_database_mode mode, qkv_error *err) {
    const int flags = mode == QKV_DATABASE_READ ? SQLITE_OPEN_READONLY
                                                : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    const int code = sqlite3_open_v2(uri, &db->handle, flags | SQLITE_OPEN_URI, NULL);
    if (code != SQLITE_OK) return qkv_database_fail(db, err);
    distrust(db);
    sqlite3_busy_timeout(db->handle, PATIENCE_MS);
    return qkv_database_run(db, "PRAGMA cell_size_check=ON", err);
}

int qkv_database_open(qkv_database *db, const char *path, qkv_database_mode mode, qkv_error *err) {
    *db = (qkv_database){.path = qkv_strdup(path), .most_steps = STEPS_ALWAYS};
    if (!db->path) return qkv_fail_memory(err);
    qkv_text uri = {0};
    int status = check_name(path, mode, err);
    if (status == QKV_OK && mode == QKV_DATABASE_READ) status = read_uri(&uri, path, err);
    if (status == QKV_OK && mode == QKV_DATABASE_WRITE) append_uri(&uri, path);
    if (status == QKV_OK && uri.failed) status = qkv_fail_memory(err);
    if (status == QKV_OK) status = open_uri(db, uri.data, mode, err);
    qkv_text_release(&uri);
    return status;
}

int qkv_database_attach(qkv_database *db, const char *path, qkv_error *err) {
    qkv_text uri = {0};
    sqlite3_stmt *statement = NULL;
    int row, status = check_name(path, QKV_DATABASE_READ, err);
    if (status == QKV_OK) status = read_uri(&uri, path, err);
    if (status == QKV_OK && uri.failed) status = qkv_fail_memory(err);
    if (status == QKV_OK) status = qkv_database_prepare(db, &statement, "ATTACH ?1 AS part", err);
    if (status == QKV_OK) {
        sqlite3_bind_text(statement, 1, uri.data, -1, SQLITE_STATIC);
        status = qkv_database_step(db, statement, &row, err);
    }
    sqlite3_finalize(statement);
    qkv_text_release(&uri);
    return status;
}

void qkv_database_close(qkv_database *db) {
    sqlite3_close_v2(db->handle);
    free(db->path);
    *db = (qkv_database){0};
}

int qkv_database_fold_log(const qkv_database *db, qkv_error *err) {
    if (sqlite3_exec(db->handle, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL) == SQLITE_OK)
        return QKV_OK;
    const int code = sqlite3_errcode(db->handle);
    return code == SQLITE_BUSY || code == SQLITE_LOCKED ? QKV_OK : qkv_database_fail(db, err);
}

/* ---- statements ---- */

int qkv_database_run(qkv_database *db, const char *sql, qkv_error *err) {
    start_counting(db);
    if (sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK) return QKV_OK;
    return qkv_database_fail(db, err);
}

int qkv_database_prepare(qkv_database *db, sqlite3_stmt **statement, const char *sql,
                         qkv_error *err) {
    start_counting(db);
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

int qkv_database_number(qkv_database *db, const char *sql, int64_t *value, qkv_error *err) {
    sqlite3_stmt *query = NULL;
    int row = 0;
    *value = 0;
    int status = qkv_database_prepare(db, &query, sql, err);
    if (status == QKV_OK) status = qkv_database_step(db, query, &row, err);
    if (row) *value = sqlite3_column_int64(query, 0);
    sqlite3_finalize(query);
    return status;
}

int qkv_database_text(qkv_database *db, const char *sql, const char *bound, char **value,
                      qkv_error *err) {
    sqlite3_stmt *query = NULL;
    int row = 0;
    *value = NULL;
    int status = qkv_database_prepare(db, &query, sql, err);
    if (status == QKV_OK && bound) sqlite3_bind_text(query, 1, bound, -1, SQLITE_STATIC);
    if (status == QKV_OK) status = qkv_database_step(db, query, &row, err);
    /* A column that is not NULL and has no text: SQLite ran out of memory. */
    const int is_null = !row || sqlite3_column_type(query, 0) == SQLITE_NULL;
    const char *text = is_null ? NULL : (const char *)sqlite3_column_text(query, 0);
    if (!is_null && !(text && (*value = qkv_strdup(text)))) status = qkv_fail_memory(err);
    sqlite3_finalize(query);
    return status;
}
