/*
 * Files of one sweep made one: the shards of a job array. They must agree in specification, model
 * and, where two hold the same cell, in its values.
 *
 * The whole is built under another name and takes the place of a results file that is there. A log
 * beside that one is folded into it first: SQLite would play it back into whatever has its name.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/text.h"
#include "sweep/sweep_format.h"

/* ---- parts ---- */

/* Checked alone first, so that nothing unchecked is ever attached. */
static int attach(qkv_database *db, const char *path, int *format, qkv_error *err) {
    qkv_database input;
    qkv_sweep_counts counts = {0};
    int status = qkv_sweep_format_open(&input, path, &counts, err);
    qkv_database_close(&input);
    *format = counts.format;
    return status == QKV_OK ? qkv_database_attach(db, path, err) : status;
}

static int count_different(qkv_database *db, const char *sql, int64_t *different, qkv_error *err) {
    int64_t n = 0;
    const int status = qkv_database_number(db, sql, &n, err);
    *different += n;
    return status;
}

static int check_same(qkv_database *db, const char *path, const char *first, qkv_error *err) {
    int64_t different = 0;
    int status = count_different(
        db,
        "SELECT count(*) FROM (SELECT key, value FROM main.meta EXCEPT SELECT key, value FROM"
        " part.meta NOT INDEXED) WHERE key IN ('spec_hash', 'model_hash')",
        &different, err);
    if (status == QKV_OK)
        status = count_different(
            db,
            "SELECT count(*) <> (SELECT count(*) FROM main.cells) FROM main.cells AS a"
            " JOIN part.cells AS b USING (id)"
            " WHERE (a.prompt, a.layer, a.head, a.target, a.op, a.epsilon, a.edit)"
            " IS (b.prompt, b.layer, b.head, b.target, b.op, b.epsilon, b.edit)",
            &different, err);
    if (status == QKV_OK && different)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%s is of another sweep or model than %s", path,
                        first);
    if (status == QKV_OK)
        status = count_different(db,
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

static int add_part(qkv_database *db, const char *const *paths, size_t i, qkv_error *err) {
    int format = QKV_SWEEP_PLAIN;
    int status = attach(db, paths[i], &format, err);
    if (status == QKV_OK && i == 0)
        status = qkv_journal_make_tables(db, &qkv_sweep_journal, format, err);
    if (status != QKV_OK) return status;
    if (i == 0)
        status = qkv_database_run(
            db,
            "INSERT INTO main.meta SELECT * FROM part.meta NOT INDEXED WHERE key <> "
            "'shard'; INSERT INTO main.prompts SELECT * FROM part.prompts;"
            "INSERT INTO main.cells SELECT * FROM part.cells",
            err);
    else
        status = check_same(db, paths[i], paths[0], err);
    if (status == QKV_OK)
        status = qkv_database_run(
            db, "INSERT OR IGNORE INTO main.results SELECT * FROM part.results", err);
    return status == QKV_OK ? qkv_database_run(db, "DETACH part", err) : status;
}

static int summarize(qkv_database *db, qkv_sweep_summary *summary, qkv_error *err) {
    int status = qkv_database_number(db, "SELECT count(*) FROM cells", &summary->n_cells, err);
    if (status == QKV_OK)
        status = qkv_database_number(db, "SELECT count(*) FROM results", &summary->n_rows, err);
    return status == QKV_OK ? qkv_sweep_format_n_without(db, &summary->n_missing, err) : status;
}

static int check_missing(qkv_database *db, int partial, qkv_sweep_summary *summary,
                         qkv_error *err) {
    int status = summarize(db, summary, err);
    if (status != QKV_OK || partial || !summary->n_missing) return status;
    char *edit = NULL;
    status = qkv_database_text(db,
                               "SELECT edit || ' of prompt ' || prompt FROM cells WHERE NOT EXISTS"
                               " (SELECT 1 FROM results WHERE cell = id) ORDER BY id LIMIT 1",
                               NULL, &edit, err);
    if (status == QKV_OK)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "%lld of %lld cell%s missing, the first is %s; finish the shards, or "
                          "merge the finished cells with `partial`",
                          (long long)summary->n_missing, (long long)summary->n_cells,
                          summary->n_cells == 1 ? " is" : "s are", edit ? edit : "?");
    free(edit);
    return status;
}

static int fill(const char *temporary, const char *const *paths, size_t n, int partial,
                qkv_sweep_summary *summary, qkv_error *err) {
    qkv_database db;
    int status = qkv_database_open(&db, temporary, QKV_DATABASE_WRITE, err);
    qkv_database_trust(&db);
    /* No other process sees the file before it is complete. */
    if (status == QKV_OK)
        status =
            qkv_database_run(&db, "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=NORMAL", err);
    for (size_t i = 0; i < n && status == QKV_OK; i++) status = add_part(&db, paths, i, err);
    if (status == QKV_OK) status = check_missing(&db, partial, summary, err);
    qkv_database_close(&db);
    return status;
}

/* ---- the file that is written ---- */

static int is_same_file(const struct stat *a, const char *path) {
    struct stat b;
    return stat(path, &b) == 0 && a->st_dev == b.st_dev && a->st_ino == b.st_ino;
}

static int check_paths(const char *out, const char *const *paths, size_t n, qkv_error *err) {
    for (size_t i = 0; i < n; i++) {
        struct stat part;
        if (stat(paths[i], &part) != 0) continue; /* opening it tells why */
        if (is_same_file(&part, out))
            return qkv_fail(err, QKV_ERR_ARGUMENT,
                            "%s is to be written, and is one of the files to merge; give another "
                            "name",
                            out);
        for (size_t k = 0; k < i; k++) {
            if (!is_same_file(&part, paths[k])) continue;
            if (strcmp(paths[i], paths[k]) == 0)
                return qkv_fail(err, QKV_ERR_ARGUMENT, "%s is given twice", paths[i]);
            return qkv_fail(err, QKV_ERR_ARGUMENT, "%s and %s are the same file", paths[k],
                            paths[i]);
        }
    }
    return QKV_OK;
}

/* *old: there is a file, of a sweep, perhaps of one that was killed before it wrote anything. What
 * else is there stays. */
static int check_target(const char *out, int *old, qkv_error *err) {
    struct stat facts;
    *old = stat(out, &facts) == 0 && facts.st_size > 0;
    if (!*old) return QKV_OK;
    qkv_database db;
    qkv_error problem = {0};
    int blank = 0;
    int format;
    int status = qkv_database_open(&db, out, QKV_DATABASE_READ, &problem);
    if (status == QKV_OK) status = qkv_journal_is_blank(&db, &blank, &problem);
    if (status == QKV_OK && !blank)
        status = qkv_journal_check(&db, &qkv_sweep_journal, &format, &problem);
    qkv_database_close(&db);
    if (status == QKV_OK) return QKV_OK;
    return qkv_fail(err, status, "%s; it is not written over", problem.message);
}

/* Leaves nothing beside the name that would be taken for the new file's. */
static int clear_logs(const char *out, const char *target, int old, qkv_error *err) {
    if (!old) return qkv_database_remove_logs(target, err);
    qkv_database db;
    int logged = 0;
    int status = qkv_database_open(&db, out, QKV_DATABASE_WRITE, err);
    if (status == QKV_OK) status = qkv_database_run(&db, "PRAGMA journal_mode=DELETE", err);
    const int busy = status != QKV_OK && db.handle && sqlite3_errcode(db.handle) == SQLITE_BUSY;
    qkv_database_close(&db);
    if (status == QKV_OK) status = qkv_database_has_log(target, &logged, err);
    if (busy || (status == QKV_OK && logged))
        return qkv_fail(err, QKV_ERR_IO,
                        "%s is open in another program; close it, or give another name", out);
    return status == QKV_OK ? qkv_database_remove_logs(target, err) : status;
}

static int replace(const char *out, const qkv_file_lock *lock, const char *const *paths, size_t n,
                   int partial, qkv_sweep_summary *summary, qkv_error *err) {
    int old = 0;
    qkv_output file;
    int status = check_paths(out, paths, n, err);
    if (status == QKV_OK) status = check_target(out, &old, err);
    if (status == QKV_OK) status = qkv_output_open(&file, out, err);
    if (status != QKV_OK) return status;
    status = fill(file.temporary.name, paths, n, partial, summary, err);
    if (status == QKV_OK) status = clear_logs(out, lock->target, old, err);
    if (status == QKV_OK) return qkv_output_finish(&file, err);
    qkv_output_abandon(&file);
    return status;
}

int qkv_sweep_merge(const char *out, const char *const *paths, size_t n, int partial,
                    qkv_sweep_summary *summary, qkv_error *err) {
    QKV_NEED(err, out);
    if (n == 0) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is nothing to merge");
    QKV_NEED(err, paths);
    for (size_t i = 0; i < n; i++) QKV_NEED(err, paths[i]);
    qkv_sweep_summary own = QKV_SWEEP_SUMMARY_INIT, unwanted = QKV_SWEEP_SUMMARY_INIT;
    if (!summary) summary = &unwanted;
    int status = qkv_sized_write(summary, &own, sizeof own, "qkv_sweep_summary", err);
    if (status != QKV_OK) return status;
    qkv_file_lock lock;
    status = qkv_file_lock_take(&lock, out, err);
    if (status == QKV_OK) status = replace(out, &lock, paths, n, partial, &own, err);
    qkv_file_lock_release(&lock);
    if (status != QKV_OK) return status;
    return qkv_sized_write(summary, &own, sizeof own, "qkv_sweep_summary", err);
}
