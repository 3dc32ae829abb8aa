#define _POSIX_C_SOURCE 200809L
#include "store/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "qkv/version.h"

/* ---- what the file says about itself ---- */

int qkv_journal_meta(qkv_database *db, const char *key, char **value, qkv_error *err) {
    char *raw = NULL;
    *value = NULL;
    /* The index may say something else than the table. */
    int status =
        qkv_database_text(db, "SELECT value FROM meta NOT INDEXED WHERE key = ?1", key, &raw, err);
    if (!raw) return status;
    qkv_text text = {0};
    qkv_text_append_utf8(&text, raw, strlen(raw));
    free(raw);
    if (text.failed) {
        qkv_text_release(&text);
        return qkv_fail_memory(err);
    }
    *value = text.data;
    return QKV_OK;
}

/* Names of models and their files may be any bytes; the file holds UTF-8. */
static int put_entry(qkv_database *db, const char *key, const char *value, qkv_error *err) {
    sqlite3_stmt *insert = NULL;
    qkv_text text = {0};
    int row;
    qkv_text_append_utf8(&text, value, strlen(value));
    int status = text.failed ? qkv_fail_memory(err) : QKV_OK;
    if (status == QKV_OK)
        status = qkv_database_prepare(db, &insert, "INSERT INTO meta VALUES (?1, ?2)", err);
    if (status == QKV_OK) {
        sqlite3_bind_text(insert, 1, key, -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 2, text.data, -1, SQLITE_STATIC);
        status = qkv_database_step(db, insert, &row, err);
    }
    sqlite3_finalize(insert);
    qkv_text_release(&text);
    return status;
}

static int put_meta(qkv_database *db, const qkv_journal_work *work, const char *model_hash,
                    qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(work->model);
    char created[32] = "", layers[16], heads[16];
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc)) strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(layers, sizeof layers, "%d", (int)info->n_layer);
    snprintf(heads, sizeof heads, "%d", (int)info->n_head);
    const char *const entries[][2] = {{"format", work->kind->formats[work->format]},
                                      {"spec", work->spec},
                                      {"spec_hash", work->spec_hash},
                                      {"model_path", qkv_path_model(info->path)},
                                      {"model_name", info->label},
                                      {"model_weights", info->weights_type},
                                      {"model_hash", model_hash},
                                      {"model_notices", info->notices[0] ? info->notices : NULL},
                                      {"n_layer", layers},
                                      {"n_head", heads},
                                      {"version", qkv_version()},
                                      {"created", created},
                                      {"shard", work->shard}};
    int status = QKV_OK;
    for (size_t i = 0; i < sizeof entries / sizeof *entries && status == QKV_OK; i++) {
        if (entries[i][1]) status = put_entry(db, entries[i][0], entries[i][1], err);
    }
    return status;
}

static int check_entry(qkv_database *db, const char *key, const char *wanted, const char *what,
                       qkv_error *err) {
    char *found = NULL;
    int status = qkv_journal_meta(db, key, &found, err);
    if (status == QKV_OK && strcmp(found ? found : "", wanted) != 0)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "%s holds the results of another %s; give another name, or remove it",
                          db->path, what);
    free(found);
    return status;
}

static int check_meta(qkv_database *db, const qkv_journal_work *work, const char *model_hash,
                      qkv_error *err) {
    const int hashed = work->spec_hash != NULL;
    int status = check_entry(db, "model_hash", model_hash, "model", err);
    if (status == QKV_OK)
        status =
            check_entry(db, hashed ? "spec_hash" : "spec", hashed ? work->spec_hash : work->spec,
                        work->kind->spec_noun ? work->kind->spec_noun : work->kind->noun, err);
    if (status == QKV_OK)
        status = check_entry(db, "shard", work->shard ? work->shard : "", "shard", err);
    return status;
}

/* ---- tables ---- */

#define IN_ALL (~0u)

static const qkv_journal_object meta_objects[] = {
    {"table", "meta", "meta", "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT)", IN_ALL},
    {"index", "sqlite_autoindex_meta_1", "meta", NULL, IN_ALL}, /* of the primary key */
};
enum { META, N_META = sizeof meta_objects / sizeof *meta_objects };

static const qkv_journal_object cells = {
    "table", "cells", "cells",
    "CREATE TABLE cells(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID", IN_ALL};

static int n_objects(const qkv_journal_kind *kind) {
    return N_META + (kind->objects ? (int)kind->n_objects : 1);
}

static const qkv_journal_object *object_at(const qkv_journal_kind *kind, int i) {
    if (i < N_META) return &meta_objects[i];
    return kind->objects ? &kind->objects[i - N_META] : &cells;
}

int qkv_journal_make_tables(qkv_database *db, const qkv_journal_kind *kind, int format,
                            qkv_error *err) {
    int status = QKV_OK;
    for (int i = 0; i < n_objects(kind) && status == QKV_OK; i++) {
        const qkv_journal_object *object = object_at(kind, i);
        if (object->sql && object->formats & 1u << format)
            status = qkv_database_run(db, object->sql, err);
    }
    return status;
}

static int is_text(sqlite3_stmt *query, int column, const char *wanted) {
    const char *text = (const char *)sqlite3_column_text(query, column);
    if (!text || !wanted) return !text && !wanted;
    return strcmp(text, wanted) == 0;
}

/* Which of the objects a row of sqlite_schema is, or -1. */
static int find_object(const qkv_journal_kind *kind, sqlite3_stmt *query) {
    for (int i = 0; i < n_objects(kind); i++) {
        const qkv_journal_object *object = object_at(kind, i);
        if (is_text(query, 0, object->type) && is_text(query, 1, object->name) &&
            is_text(query, 2, object->table) && is_text(query, 3, object->sql))
            return i;
    }
    return -1;
}

static void append_column(qkv_text *text, sqlite3_stmt *query, int column) {
    const char *name = (const char *)sqlite3_column_text(query, column);
    const size_t length = name ? strlen(name) : 0;
    qkv_text_append_visible(text, name, length < 64 ? length : 64);
}

/* Sets bits of `found`. What is not ours is described in `other`, and ends it. */
static int list_objects(qkv_database *db, const qkv_journal_kind *kind, unsigned *found,
                        qkv_text *other, qkv_error *err) {
    sqlite3_stmt *query = NULL;
    int row = 1;
    int status = qkv_database_prepare(db, &query,
                                      "SELECT type, name, tbl_name, sql FROM sqlite_schema", err);
    while (status == QKV_OK && row && !other->length) {
        status = qkv_database_step(db, query, &row, err);
        if (status != QKV_OK || !row) break;
        const int object = find_object(kind, query);
        if (object >= 0 && !(*found & 1u << object)) {
            *found |= 1u << object;
        } else {
            qkv_text_puts(other, "it has a ");
            append_column(other, query, 0);
            qkv_text_puts(other, " '");
            append_column(other, query, 1);
            qkv_text_printf(other, "' that no %s makes", kind->noun);
        }
    }
    sqlite3_finalize(query);
    return status == QKV_OK && other->failed ? qkv_fail_memory(err) : status;
}

static int fail_kind(const qkv_database *db, const qkv_journal_kind *kind, const char *why,
                     qkv_error *err) {
    return qkv_fail(err, QKV_ERR_FORMAT, "%s is not the results file of a %s%s%s", db->path,
                    kind->noun, why[0] ? ": " : "", why);
}

static int check_tables(const qkv_database *db, const qkv_journal_kind *kind, int format,
                        unsigned found, const qkv_text *other, qkv_error *err) {
    if (other->length) return fail_kind(db, kind, other->data, err);
    for (int i = 0; i < n_objects(kind); i++) {
        const qkv_journal_object *object = object_at(kind, i);
        const int wanted = (object->formats & 1u << format) != 0, is_there = (found & 1u << i) != 0;
        if (wanted == is_there) continue;
        char why[96];
        snprintf(why, sizeof why,
                 is_there ? "its %s '%s' is of another format" : "it has no %s '%s'", object->type,
                 object->name);
        return fail_kind(db, kind, why, err);
    }
    return QKV_OK;
}

/* ---- whose it is ---- */

/* "qkv sweep 3" names itself a sweep: it may have other tables. */
static int is_of_kind(const char *name, const qkv_journal_kind *kind) {
    const char *number = strrchr(kind->formats[0], ' ');
    return strncmp(name, kind->formats[0], (size_t)(number - kind->formats[0])) == 0;
}

static int find_format(const qkv_database *db, const qkv_journal_kind *kind, const char *name,
                       int *format, qkv_error *err) {
    const char *const *formats = kind->formats;
    if (!name || !is_of_kind(name, kind)) return fail_kind(db, kind, "", err);
    for (int i = 0; i < QKV_JOURNAL_FORMATS && formats[i]; i++) {
        *format = i;
        if (strcmp(name, formats[i]) == 0) return QKV_OK;
    }
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "%s has the format '%.40s', and '%s'%s%s%s is expected", db->path, name,
                    formats[0], formats[1] ? " or '" : "", formats[1] ? formats[1] : "",
                    formats[1] ? "'" : "");
}

static int read_format(qkv_database *db, const qkv_journal_kind *kind, int *format,
                       qkv_error *err) {
    char *name = NULL;
    int status = qkv_journal_meta(db, "format", &name, err);
    if (status == QKV_OK) status = find_format(db, kind, name, format, err);
    free(name);
    return status;
}

/* Order and merging would depend on it. */
static int check_encoding(qkv_database *db, const qkv_journal_kind *kind, qkv_error *err) {
    char *encoding = NULL;
    int status = qkv_database_text(db, "PRAGMA encoding", NULL, &encoding, err);
    if (status == QKV_OK && (!encoding || strcmp(encoding, "UTF-8") != 0))
        status = fail_kind(db, kind, "its texts are not UTF-8", err);
    free(encoding);
    return status;
}

static int check_former(qkv_database *db, const qkv_journal_kind *kind, qkv_error *err) {
    char *found = NULL;
    if (!kind->former) return QKV_OK;
    int status = qkv_database_text(db, "SELECT name FROM sqlite_schema WHERE name = ?1",
                                   kind->former, &found, err);
    if (status == QKV_OK && found)
        status = qkv_fail(err, QKV_ERR_UNSUPPORTED,
                          "%s was made by an earlier version of qkv, and a %s cannot resume from "
                          "it; give another name, or remove it",
                          db->path, kind->noun);
    free(found);
    return status;
}

int qkv_journal_check(qkv_database *db, const qkv_journal_kind *kind, int *format, qkv_error *err) {
    unsigned found = 0;
    *format = 0;
    qkv_text other = {0};
    int status = check_encoding(db, kind, err);
    if (status == QKV_OK) status = check_former(db, kind, err);
    if (status == QKV_OK) status = list_objects(db, kind, &found, &other, err);
    if (status == QKV_OK && found & 1u << META) status = read_format(db, kind, format, err);
    if (status == QKV_OK) status = check_tables(db, kind, *format, found, &other, err);
    qkv_text_release(&other);
    return status;
}

int qkv_journal_is_blank(qkv_database *db, int *blank, qkv_error *err) {
    static const char *const queries[] = {"SELECT count(*) FROM sqlite_schema",
                                          "PRAGMA application_id", "PRAGMA user_version"};
    int64_t sum = 0, n;
    int status = QKV_OK;
    for (size_t i = 0; i < sizeof queries / sizeof *queries && status == QKV_OK; i++) {
        status = qkv_database_number(db, queries[i], &n, err);
        sum |= n;
    }
    *blank = sum == 0;
    return status;
}

/* ---- opening and closing ---- */

/* All or nothing: a file that is there has all the rows it begins with. */
static int fill_new(qkv_journal *file, const qkv_journal_work *work, const char *model_hash,
                    qkv_error *err) {
    int status = qkv_journal_begin(file, err);
    if (status != QKV_OK) return status;
    status = qkv_journal_make_tables(&file->db, work->kind, work->format, err);
    if (status == QKV_OK) status = put_meta(&file->db, work, model_hash, err);
    if (status == QKV_OK && work->fill) status = work->fill(file, work->user, err);
    return qkv_journal_end(file, status, err);
}

static int check_old(qkv_journal *file, const qkv_journal_work *work, const char *model_hash,
                     qkv_error *err) {
    int format;
    int status = qkv_journal_check(&file->db, work->kind, &format, err);
    if (status == QKV_OK) status = check_meta(&file->db, work, model_hash, err);
    return status == QKV_OK && work->check ? work->check(file, work->user, err) : status;
}

static int make_or_check(qkv_journal *file, const qkv_journal_work *work, qkv_error *err) {
    char hash[33];
    int blank = 0;
    int status = qkv_model_hash(work->model, hash, err);
    if (status == QKV_OK) status = qkv_journal_is_blank(&file->db, &blank, err);
    if (status == QKV_OK && !blank) status = check_old(file, work, hash, err);
    file->is_ours = status == QKV_OK;
    qkv_database_trust(&file->db);
    /* Normal: a power cut may lose the last blocks, never the file. */
    if (status == QKV_OK)
        status =
            qkv_database_run(&file->db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL", err);
    return status == QKV_OK && blank ? fill_new(file, work, hash, err) : status;
}

static int close_database(qkv_journal *file, qkv_error *err) {
    int status = QKV_OK;
    sqlite3_finalize(file->insert);
    sqlite3_finalize(file->select);
    if (file->db.handle && file->is_ours) status = qkv_database_fold_log(&file->db, err);
    qkv_database_close(&file->db);
    return status;
}

int qkv_journal_open(qkv_journal *file, const char *path, const qkv_journal_work *work,
                     qkv_error *err) {
    *file = (qkv_journal){0};
    int status = qkv_file_lock_take(&file->lock, path, err);
    /* No other process makes or removes it while we have the lock. */
    const int is_new = status == QKV_OK && access(file->lock.target, F_OK) != 0;
    if (status == QKV_OK) status = qkv_database_open(&file->db, path, QKV_DATABASE_WRITE, err);
    if (status == QKV_OK) status = make_or_check(file, work, err);
    if (status == QKV_OK) return QKV_OK;
    close_database(file, NULL);
    if (is_new) { /* its rows come with its first transaction, so it is empty */
        unlink(file->lock.target);
        qkv_database_remove_logs(file->lock.target, NULL);
    }
    qkv_file_lock_release(&file->lock);
    *file = (qkv_journal){0};
    return status;
}

int qkv_journal_close(qkv_journal *file, qkv_error *err) {
    if (!file->db.handle) return QKV_OK;
    const int status = close_database(file, err);
    qkv_file_lock_release(&file->lock);
    *file = (qkv_journal){0};
    return status;
}

/* ---- filling ---- */

int qkv_journal_begin(qkv_journal *file, qkv_error *err) {
    return qkv_database_run(&file->db, "BEGIN IMMEDIATE", err);
}

int qkv_journal_end(qkv_journal *file, int status, qkv_error *err) {
    if (status == QKV_OK) status = qkv_database_run(&file->db, "COMMIT", err);
    if (status != QKV_OK) sqlite3_exec(file->db.handle, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

static int prepare_once(qkv_journal *file, sqlite3_stmt **statement, const char *sql,
                        qkv_error *err) {
    return *statement ? QKV_OK : qkv_database_prepare(&file->db, statement, sql, err);
}

int qkv_journal_get(qkv_journal *file, const char *key, char **value, qkv_error *err) {
    int row = 0;
    *value = NULL;
    int status = prepare_once(file, &file->select, "SELECT value FROM cells WHERE key = ?1", err);
    if (status != QKV_OK) return status;
    sqlite3_bind_text(file->select, 1, key, -1, SQLITE_STATIC);
    status = qkv_database_step(&file->db, file->select, &row, err);
    const char *text = row ? (const char *)sqlite3_column_text(file->select, 0) : NULL;
    if (row && !(text && (*value = qkv_strdup(text)))) status = qkv_fail_memory(err);
    sqlite3_reset(file->select);
    return status;
}

int qkv_journal_put(qkv_journal *file, const char *key, const char *value, qkv_error *err) {
    int row, status = prepare_once(file, &file->insert,
                                   "INSERT OR REPLACE INTO cells VALUES (?1, ?2)", err);
    if (status != QKV_OK) return status;
    sqlite3_bind_text(file->insert, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_text(file->insert, 2, value, -1, SQLITE_STATIC);
    return qkv_database_step(&file->db, file->insert, &row, err);
}
