/*
 * The file of results while a sweep runs: made with all its cells, filled block by block.
 *
 * A block is one transaction in a write-ahead log, so that whatever ends the process leaves whole
 * cells; which of them are missing is read from the file itself. A finished file has no log.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "store/database.h"
#include "sweep/results.h"
#include "sweep/sweep.h"

struct qkv_results {
    qkv_database db;
    const qkv_sweep *sweep;
    sqlite3_stmt *insert, *count;
};

const char qkv_results_schema[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT);"
    "CREATE TABLE prompts(id INTEGER PRIMARY KEY, text TEXT, tokens TEXT);"
    "CREATE TABLE cells(id INTEGER PRIMARY KEY, prompt INTEGER, layer INTEGER, head INTEGER,"
    " target TEXT, op TEXT, epsilon REAL, edit TEXT);"
    "CREATE TABLE results(cell INTEGER, metric TEXT, value REAL, PRIMARY KEY (cell, metric))"
    " WITHOUT ROWID;"
    "CREATE VIEW rows AS SELECT prompt, layer, head, target, op, epsilon, metric, value"
    " FROM cells JOIN results ON results.cell = cells.id;";

/* ---- a new file ---- */

static int put_meta(const qkv_results *r, const char *key, const char *value, qkv_error *err) {
    sqlite3_stmt *insert = NULL;
    int row;
    int status = qkv_database_prepare(&r->db, &insert, "INSERT INTO meta VALUES (?1, ?2)", err);
    if (status == QKV_OK) {
        sqlite3_bind_text(insert, 1, key, -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 2, value, -1, SQLITE_STATIC);
        status = qkv_database_step(&r->db, insert, &row, err);
    }
    sqlite3_finalize(insert);
    return status;
}

static int put_all_meta(const qkv_results *r, const char *model_hash, const char *shard,
                        qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(r->sweep->model);
    char created[32] = "", layers[16], heads[16];
    time_t now = time(NULL);
    const struct tm *utc = gmtime(&now);
    if (utc) strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", utc);
    snprintf(layers, sizeof layers, "%d", (int)info->n_layer);
    snprintf(heads, sizeof heads, "%d", (int)info->n_head);
    const char *const entries[][2] = {{"format", QKV_RESULTS_FORMAT},
                                      {"spec", r->sweep->json},
                                      {"spec_hash", r->sweep->hash},
                                      {"model_path", qkv_path_base(info->path)},
                                      {"model_name", info->name},
                                      {"model_hash", model_hash},
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

static int put_prompts(const qkv_results *r, qkv_error *err) {
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

static int put_cells(const qkv_results *r, qkv_error *err) {
    sqlite3_stmt *insert = NULL;
    int row;
    int status = qkv_database_prepare(
        &r->db, &insert, "INSERT INTO cells VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)", err);
    for (int64_t i = 0; i < qkv_sweep_n_cells(r->sweep) && status == QKV_OK; i++) {
        qkv_cell cell = qkv_sweep_get_cell(r->sweep, i);
        sqlite3_bind_int64(insert, 1, cell.id);
        sqlite3_bind_int64(insert, 2, (sqlite3_int64)cell.prompt);
        sqlite3_bind_int(insert, 3, cell.layer);
        sqlite3_bind_int(insert, 4, cell.head);
        sqlite3_bind_text(insert, 5, cell.target, -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 6, cell.op, -1, SQLITE_STATIC);
        sqlite3_bind_double(insert, 7, cell.epsilon); /* NaN becomes NULL */
        sqlite3_bind_text(insert, 8, cell.edit, -1, SQLITE_STATIC);
        status = qkv_database_step(&r->db, insert, &row, err);
    }
    sqlite3_finalize(insert);
    return status;
}

/* All or nothing: a file that is there has all its cells. */
static int fill_new(const qkv_results *r, const char *model_hash, const char *shard,
                    qkv_error *err) {
    int status = qkv_database_run(&r->db, "BEGIN IMMEDIATE", err);
    if (status == QKV_OK) status = qkv_database_run(&r->db, qkv_results_schema, err);
    if (status == QKV_OK) status = put_all_meta(r, model_hash, shard, err);
    if (status == QKV_OK) status = put_prompts(r, err);
    if (status == QKV_OK) status = put_cells(r, err);
    return status == QKV_OK ? qkv_database_run(&r->db, "COMMIT", err) : status;
}

/* ---- an old file ---- */

static int check_entry(const qkv_results *r, const char *key, const char *wanted, const char *what,
                       qkv_error *err) {
    char *found = NULL;
    int status = qkv_results_meta(&r->db, key, &found, err);
    if (status == QKV_OK && strcmp(found ? found : "", wanted) != 0)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "%s holds the results of another %s; give another -o, or remove it",
                          r->db.path, what);
    free(found);
    return status;
}

static int check_old(const qkv_results *r, const char *model_hash, const char *shard,
                     qkv_error *err) {
    int status = qkv_results_check_format(&r->db, err);
    if (status == QKV_OK) status = check_entry(r, "model_hash", model_hash, "model", err);
    if (status == QKV_OK) status = check_entry(r, "spec_hash", r->sweep->hash, "sweep", err);
    if (status == QKV_OK) status = check_entry(r, "shard", shard ? shard : "", "shard", err);
    return status;
}

int qkv_results_meta(const qkv_database *db, const char *key, char **value, qkv_error *err) {
    return qkv_database_text(db, "SELECT value FROM meta WHERE key = ?1", key, value, err);
}

int qkv_results_check_format(const qkv_database *db, qkv_error *err) {
    int64_t n = 0;
    char *format = NULL;
    int status = qkv_database_number(
        db, "SELECT count(*) FROM sqlite_master WHERE name IN ('meta', 'cells', 'results')", &n,
        err);
    if (status == QKV_OK && n == 3) status = qkv_results_meta(db, "format", &format, err);
    if (status == QKV_OK && (!format || strcmp(format, QKV_RESULTS_FORMAT) != 0))
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s is not a file of results of a sweep%s%s",
                          db->path, format ? ", but of " : "", format ? format : "");
    free(format);
    return status;
}

/* ---- opening and closing ---- */

static int make_or_check(const qkv_results *r, const char *shard, qkv_error *err) {
    char hash[33];
    int64_t n_tables = 0;
    int status = qkv_model_hash(r->sweep->model, hash, err);
    if (status == QKV_OK)
        status = qkv_database_number(&r->db, "SELECT count(*) FROM sqlite_master", &n_tables, err);
    if (status == QKV_OK && n_tables) status = check_old(r, hash, shard, err);
    /* Normal: a power cut may lose the last blocks, never the file. */
    if (status == QKV_OK)
        status =
            qkv_database_run(&r->db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL", err);
    return status == QKV_OK && !n_tables ? fill_new(r, hash, shard, err) : status;
}

/* A file that holds nothing, and what SQLite could not remove beside it. */
static void remove_file(const char *path) {
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (int i = 0; i < 3; i++) {
        qkv_text name = {0};
        qkv_text_printf(&name, "%s%s", path, suffixes[i]);
        if (name.data && !name.failed) unlink(name.data);
        qkv_text_release(&name);
    }
}

int qkv_results_open(qkv_results **out, const qkv_sweep *sweep, const char *path, const char *shard,
                     qkv_error *err) {
    *out = NULL;
    qkv_results *r = qkv_calloc(1, sizeof *r);
    if (!r) return qkv_fail_memory(err);
    r->sweep = sweep;
    const int is_new = access(path, F_OK) != 0;
    int status = qkv_database_open(&r->db, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
    if (status == QKV_OK) status = make_or_check(r, shard, err);
    const int is_empty = status != QKV_OK; /* its cells come with its first transaction */
    if (status == QKV_OK)
        status = qkv_database_prepare(&r->db, &r->insert,
                                      "INSERT OR REPLACE INTO results VALUES (?1, ?2, ?3)", err);
    if (status == QKV_OK)
        status = qkv_database_prepare(
            &r->db, &r->count, "SELECT count(*) FROM results WHERE cell >= ?1 AND cell < ?2", err);
    if (status != QKV_OK) {
        qkv_results_close(r, NULL);
        if (is_new && is_empty) remove_file(path);
        return status;
    }
    *out = r;
    return QKV_OK;
}

int qkv_results_close(qkv_results *results, qkv_error *err) {
    if (!results) return QKV_OK;
    sqlite3_finalize(results->insert);
    sqlite3_finalize(results->count);
    int status = QKV_OK;
    /* A reader may hold the log: then the last one to close the file removes it. */
    if (results->db.handle &&
        sqlite3_exec(results->db.handle, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL) !=
            SQLITE_OK &&
        sqlite3_errcode(results->db.handle) != SQLITE_BUSY &&
        sqlite3_errcode(results->db.handle) != SQLITE_LOCKED)
        status = qkv_database_fail(&results->db, err);
    qkv_database_close(&results->db);
    free(results);
    return status;
}

/* ---- filling ---- */

int qkv_results_n_done(qkv_results *results, int64_t *n, qkv_error *err) {
    int status = qkv_database_number(&results->db, "SELECT count(*) FROM results", n, err);
    *n /= (int64_t)results->sweep->n_metrics;
    return status;
}

int qkv_results_n_missing(qkv_results *results, int64_t block, int64_t *n, qkv_error *err) {
    int64_t count;
    int64_t first = qkv_sweep_block(results->sweep, block, &count);
    int row;
    sqlite3_bind_int64(results->count, 1, first);
    sqlite3_bind_int64(results->count, 2, first + count);
    int status = qkv_database_step(&results->db, results->count, &row, err);
    *n = count;
    if (status != QKV_OK) return status;
    *n -= sqlite3_column_int64(results->count, 0) / (int64_t)results->sweep->n_metrics;
    sqlite3_reset(results->count);
    return QKV_OK;
}

static int put_cell(const qkv_results *r, int64_t cell, const double *values, qkv_error *err) {
    int row, status = QKV_OK;
    for (size_t m = 0; m < r->sweep->n_metrics && status == QKV_OK; m++) {
        sqlite3_bind_int64(r->insert, 1, cell);
        sqlite3_bind_text(r->insert, 2, qkv_sweep_metric(r->sweep, m), -1, SQLITE_STATIC);
        sqlite3_bind_double(r->insert, 3, values[m]); /* NaN becomes NULL */
        status = qkv_database_step(&r->db, r->insert, &row, err);
    }
    return status;
}

int qkv_results_put(qkv_results *results, int64_t block, const double *values, qkv_error *err) {
    int64_t n;
    int64_t first = qkv_sweep_block(results->sweep, block, &n);
    int status = qkv_database_run(&results->db, "BEGIN IMMEDIATE", err);
    if (status != QKV_OK) return status;
    for (int64_t i = 0; i < n && status == QKV_OK; i++)
        status = put_cell(results, first + i, values + (size_t)i * results->sweep->n_metrics, err);
    if (status == QKV_OK) status = qkv_database_run(&results->db, "COMMIT", err);
    if (status != QKV_OK) sqlite3_exec(results->db.handle, "ROLLBACK", NULL, NULL, NULL);
    return status;
}
