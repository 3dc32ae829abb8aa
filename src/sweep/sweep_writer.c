/*
 * The file of results while a sweep runs: made with all its cells, filled block by block.
 *
 * A block is one transaction in a write-ahead log, so that whatever ends the process leaves whole
 * cells; which of them are missing is read from the file itself. A finished file has no log. There
 * is one writer at a time, by a lock that ends with its process.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/memory.h"
#include "base/text.h"
#include "qkv/version.h"
#include "store/database.h"
#include "sweep/sweep.h"
#include "sweep/sweep_writer.h"

/* Which of the formats the results of a sweep have. */
static qkv_sweep_format format_of(const qkv_sweep *sweep) {
    return sweep->patching ? QKV_SWEEP_PATCHING : QKV_SWEEP_PLAIN;
}

struct qkv_sweep_writer {
    qkv_file_lock lock;
    qkv_database db;
    int is_ours;      /* checked, or made: its log may be folded in */
    qkv_sweep *sweep; /* kept alive */
    sqlite3_stmt *insert, *count;
};

/* ---- a new file ---- */

/* Names of models and their files may be any bytes; the file holds UTF-8. */
static int put_meta(qkv_sweep_writer *r, const char *key, const char *value, qkv_error *err) {
    sqlite3_stmt *insert = NULL;
    qkv_text text = {0};
    int row;
    qkv_text_append_utf8(&text, value, strlen(value));
    int status = text.failed ? qkv_fail_memory(err) : QKV_OK;
    if (status == QKV_OK)
        status = qkv_database_prepare(&r->db, &insert, "INSERT INTO meta VALUES (?1, ?2)", err);
    if (status == QKV_OK) {
        sqlite3_bind_text(insert, 1, key, -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 2, text.data, -1, SQLITE_STATIC);
        status = qkv_database_step(&r->db, insert, &row, err);
    }
    sqlite3_finalize(insert);
    qkv_text_release(&text);
    return status;
}

static int put_all_meta(qkv_sweep_writer *r, const char *model_hash, const char *shard,
                        qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(r->sweep->model);
    char created[32] = "", layers[16], heads[16];
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc)) strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(layers, sizeof layers, "%d", (int)info->n_layer);
    snprintf(heads, sizeof heads, "%d", (int)info->n_head);
    const char *const entries[][2] = {{"format", qkv_sweep_format_name(format_of(r->sweep))},
                                      {"spec", r->sweep->json},
                                      {"spec_hash", r->sweep->hash},
                                      {"model_path", qkv_path_model(info->path)},
                                      {"model_name", info->label},
                                      {"model_weights", info->weights_type},
                                      {"model_hash", model_hash},
                                      {"model_notices", info->notices[0] ? info->notices : NULL},
                                      {"n_layer", layers},
                                      {"n_head", heads},
                                      {"version", qkv_version()},
                                      {"created", created},
                                      {"shard", shard}};
    int status = QKV_OK;
    for (size_t i = 0; i < sizeof entries / sizeof *entries && status == QKV_OK; i++) {
        if (entries[i][1]) status = put_meta(r, entries[i][0], entries[i][1], err);
    }
    return status;
}

static int put_prompts(qkv_sweep_writer *r, qkv_error *err) {
    sqlite3_stmt *insert = NULL;
    int row;
    int status =
        qkv_database_prepare(&r->db, &insert, "INSERT INTO prompts VALUES (?1, ?2, ?3)", err);
    for (size_t i = 0; i < r->sweep->n_prompts && status == QKV_OK; i++) {
        const qkv_sweep_prompt *prompt = &r->sweep->prompts[i];
        qkv_text tokens = {0};
        for (size_t t = 0; t < prompt->n_tokens; t++)
            qkv_text_printf(&tokens, "%s%d", t ? "," : "[", (int)prompt->tokens[t]);
        qkv_text_puts(&tokens, "]");
        sqlite3_bind_int64(insert, 1, (sqlite3_int64)i);
        sqlite3_bind_text(insert, 2, prompt->text, -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 3, tokens.data, -1, SQLITE_TRANSIENT);
        status =
            tokens.failed ? qkv_fail_memory(err) : qkv_database_step(&r->db, insert, &row, err);
        qkv_text_release(&tokens);
    }
    sqlite3_finalize(insert);
    return status;
}

static int put_cells(qkv_sweep_writer *r, qkv_error *err) {
    sqlite3_stmt *insert = NULL;
    int row;
    const int has_position = format_of(r->sweep) == QKV_SWEEP_PATCHING;
    int status = qkv_database_prepare(
        &r->db, &insert,
        has_position ? "INSERT INTO cells VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
                     : "INSERT INTO cells VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        err);
    qkv_cell cell = QKV_CELL_INIT;
    for (int64_t i = 0; status == QKV_OK && i < qkv_sweep_n_cells(r->sweep); i++) {
        if (!qkv_sweep_get_cell(r->sweep, i, &cell)) {
            status = qkv_fail_memory(err);
            break;
        }
        sqlite3_bind_int64(insert, 1, cell.id);
        sqlite3_bind_int64(insert, 2, (sqlite3_int64)cell.prompt);
        sqlite3_bind_int(insert, 3, cell.layer);
        sqlite3_bind_int(insert, 4, cell.head);
        sqlite3_bind_text(insert, 5, cell.target, -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 6, cell.op, -1, SQLITE_STATIC);
        sqlite3_bind_double(insert, 7, cell.epsilon); /* NaN becomes NULL */
        sqlite3_bind_text(insert, 8, cell.edit, -1, SQLITE_STATIC);
        if (has_position) sqlite3_bind_int64(insert, 9, cell.position);
        status = qkv_database_step(&r->db, insert, &row, err);
    }
    sqlite3_finalize(insert);
    return status;
}

/* All or nothing: a file that is there has all its cells. */
static int fill_new(qkv_sweep_writer *r, const char *model_hash, const char *shard,
                    qkv_error *err) {
    int status = qkv_database_run(&r->db, "BEGIN IMMEDIATE", err);
    if (status == QKV_OK) status = qkv_sweep_format_make_tables(&r->db, format_of(r->sweep), err);
    if (status == QKV_OK) status = put_all_meta(r, model_hash, shard, err);
    if (status == QKV_OK) status = put_prompts(r, err);
    if (status == QKV_OK) status = put_cells(r, err);
    return status == QKV_OK ? qkv_database_run(&r->db, "COMMIT", err) : status;
}

/* ---- an old file ---- */

static int check_entry(qkv_sweep_writer *r, const char *key, const char *wanted, const char *what,
                       qkv_error *err) {
    char *found = NULL;
    int status = qkv_sweep_format_meta(&r->db, key, &found, err);
    if (status == QKV_OK && strcmp(found ? found : "", wanted) != 0)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "%s holds the results of another %s; give another name, or remove it",
                          r->db.path, what);
    free(found);
    return status;
}

static int check_old(qkv_sweep_writer *r, const char *model_hash, const char *shard,
                     qkv_error *err) {
    qkv_sweep_counts counts;
    int status = qkv_sweep_format_check_rows(&r->db, &counts, err);
    if (status == QKV_OK) status = check_entry(r, "model_hash", model_hash, "model", err);
    if (status == QKV_OK) status = check_entry(r, "spec_hash", r->sweep->hash, "sweep", err);
    if (status == QKV_OK) status = check_entry(r, "shard", shard ? shard : "", "shard", err);
    if (status == QKV_OK && counts.n_cells != qkv_sweep_n_cells(r->sweep))
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s has %lld cells, and its sweep %lld", r->db.path,
                          (long long)counts.n_cells, (long long)qkv_sweep_n_cells(r->sweep));
    return status;
}

/* ---- opening and closing ---- */

static int make_or_check(qkv_sweep_writer *r, const char *shard, qkv_error *err) {
    char hash[33];
    int blank = 0;
    int status = qkv_model_hash(r->sweep->model, hash, err);
    if (status == QKV_OK) status = qkv_sweep_writer_is_blank(&r->db, &blank, err);
    if (status == QKV_OK && !blank) status = check_old(r, hash, shard, err);
    r->is_ours = status == QKV_OK;
    qkv_database_trust(&r->db);
    /* Normal: a power cut may lose the last blocks, never the file. */
    if (status == QKV_OK)
        status =
            qkv_database_run(&r->db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL", err);
    return status == QKV_OK && blank ? fill_new(r, hash, shard, err) : status;
}

static int prepare_all(qkv_sweep_writer *r, qkv_error *err) {
    int status = qkv_database_prepare(&r->db, &r->insert,
                                      "INSERT OR REPLACE INTO results VALUES (?1, ?2, ?3)", err);
    if (status == QKV_OK)
        status = qkv_database_prepare(
            &r->db, &r->count, "SELECT count(*) FROM results WHERE cell >= ?1 AND cell < ?2", err);
    return status;
}

static int close_database(qkv_sweep_writer *r, qkv_error *err) {
    int status = QKV_OK;
    sqlite3_finalize(r->insert);
    sqlite3_finalize(r->count);
    if (r->db.handle && r->is_ours) status = qkv_database_fold_log(&r->db, err);
    qkv_database_close(&r->db);
    return status;
}

/* "2/3", written as we write it: files of one part are told by this text. */
static int check_part(const char *shard, qkv_error *err) {
    long long part = 0, n = 0;
    char text[48];
    if (!shard) return QKV_OK;
    if (sscanf(shard, "%lld/%lld", &part, &n) == 2 && n > 0) {
        snprintf(text, sizeof text, "%lld/%lld", part, n);
        if (strcmp(text, shard) == 0) return qkv_sweep_check_shard(part, n, err);
    }
    return qkv_fail(err, QKV_ERR_ARGUMENT, "'%s' is not a part of a sweep, such as 2/3", shard);
}

int qkv_sweep_writer_open(qkv_sweep_writer **out, const qkv_sweep *sweep, const char *path,
                          const char *shard, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, sweep);
    QKV_NEED(err, path);
    const int problem = check_part(shard, err);
    if (problem != QKV_OK) return problem;
    qkv_sweep_writer *r = qkv_calloc(1, sizeof *r);
    if (!r) return qkv_fail_memory(err);
    r->sweep = qkv_sweep_retain(sweep);
    int status = qkv_file_lock_take(&r->lock, path, err);
    /* No other process makes or removes it while we have the lock. */
    const int is_new = status == QKV_OK && access(r->lock.target, F_OK) != 0;
    if (status == QKV_OK) status = qkv_database_open(&r->db, path, QKV_DATABASE_WRITE, err);
    if (status == QKV_OK) status = make_or_check(r, shard, err);
    const int is_empty = status != QKV_OK; /* its cells come with its first transaction */
    if (status == QKV_OK) status = prepare_all(r, err);
    if (status == QKV_OK) {
        *out = r;
        return QKV_OK;
    }
    close_database(r, NULL);
    if (is_new && is_empty) {
        unlink(r->lock.target);
        qkv_database_remove_logs(r->lock.target, NULL);
    }
    qkv_file_lock_release(&r->lock);
    qkv_sweep_free(r->sweep);
    free(r);
    return status;
}

int qkv_sweep_writer_close(qkv_sweep_writer *results, qkv_error *err) {
    if (!results) return QKV_OK;
    const int status = close_database(results, err);
    qkv_file_lock_release(&results->lock);
    qkv_sweep_free(results->sweep);
    free(results);
    return status;
}

int qkv_sweep_writer_is_of(const qkv_sweep_writer *results, const qkv_sweep *sweep) {
    return strcmp(results->sweep->hash, sweep->hash) == 0;
}

/* ---- filling ---- */

int qkv_sweep_writer_n_done(qkv_sweep_writer *results, int64_t *n, qkv_error *err) {
    QKV_NEED(err, results);
    QKV_NEED(err, n);
    int status = qkv_database_number(&results->db, "SELECT count(*) FROM results", n, err);
    *n /= (int64_t)results->sweep->n_metrics;
    return status;
}

static int fail_block(int64_t block, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_ARGUMENT, "the sweep has no block %lld", (long long)block);
}

int qkv_sweep_writer_n_missing(qkv_sweep_writer *results, int64_t block, int64_t *n,
                               qkv_error *err) {
    int64_t count;
    QKV_NEED(err, results);
    QKV_NEED(err, n);
    int64_t first = qkv_sweep_block(results->sweep, block, &count);
    int row;
    *n = 0;
    if (first < 0) return fail_block(block, err);
    sqlite3_bind_int64(results->count, 1, first);
    sqlite3_bind_int64(results->count, 2, first + count);
    int status = qkv_database_step(&results->db, results->count, &row, err);
    *n = count;
    if (status != QKV_OK) return status;
    *n -= sqlite3_column_int64(results->count, 0) / (int64_t)results->sweep->n_metrics;
    sqlite3_reset(results->count);
    return QKV_OK;
}

static int put_cell(const qkv_sweep_writer *r, int64_t cell, const double *values, qkv_error *err) {
    int row, status = QKV_OK;
    for (size_t m = 0; m < r->sweep->n_metrics && status == QKV_OK; m++) {
        sqlite3_bind_int64(r->insert, 1, cell);
        sqlite3_bind_text(r->insert, 2, qkv_sweep_metric(r->sweep, m), -1, SQLITE_STATIC);
        sqlite3_bind_double(r->insert, 3, values[m]); /* NaN becomes NULL */
        status = qkv_database_step(&r->db, r->insert, &row, err);
    }
    return status;
}

int qkv_sweep_writer_put(qkv_sweep_writer *results, int64_t block, const double *values,
                         qkv_error *err) {
    int64_t n;
    QKV_NEED(err, results);
    QKV_NEED(err, values);
    int64_t first = qkv_sweep_block(results->sweep, block, &n);
    if (first < 0) return fail_block(block, err);
    int status = qkv_database_run(&results->db, "BEGIN IMMEDIATE", err);
    if (status != QKV_OK) return status;
    for (int64_t i = 0; i < n && status == QKV_OK; i++)
        status = put_cell(results, first + i, values + (size_t)i * results->sweep->n_metrics, err);
    if (status == QKV_OK) status = qkv_database_run(&results->db, "COMMIT", err);
    if (status != QKV_OK) sqlite3_exec(results->db.handle, "ROLLBACK", NULL, NULL, NULL);
    return status;
}
