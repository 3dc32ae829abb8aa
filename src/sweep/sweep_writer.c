/*
 * The file of results while a sweep runs: made with all its cells, filled block by block.
 *
 * It is a journal (store/journal.h): a block is one transaction, and which cells are missing is read
 * from the file itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "sweep/sweep.h"
#include "sweep/sweep_format.h"

struct qkv_sweep_writer {
    qkv_journal file;
    qkv_sweep *sweep; /* kept alive */
    sqlite3_stmt *insert, *count;
};

/* ---- a new file ---- */

static int put_prompts(qkv_database *db, const qkv_sweep *sweep, qkv_error *err) {
    sqlite3_stmt *insert = NULL;
    int row;
    int status = qkv_database_prepare(db, &insert, "INSERT INTO prompts VALUES (?1, ?2, ?3)", err);
    for (size_t i = 0; i < sweep->n_prompts && status == QKV_OK; i++) {
        const qkv_own_prompt *prompt = &sweep->prompts[i];
        qkv_text tokens = {0};
        for (size_t t = 0; t < prompt->n_tokens; t++)
            qkv_text_printf(&tokens, "%s%d", t ? "," : "[", (int)prompt->tokens[t]);
        qkv_text_puts(&tokens, "]");
        sqlite3_bind_int64(insert, 1, (sqlite3_int64)i);
        sqlite3_bind_text(insert, 2, prompt->text, -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 3, tokens.data, -1, SQLITE_TRANSIENT);
        status = tokens.failed ? qkv_fail_memory(err) : qkv_database_step(db, insert, &row, err);
        qkv_text_release(&tokens);
    }
    sqlite3_finalize(insert);
    return status;
}

static int put_cells(qkv_database *db, const qkv_sweep *sweep, qkv_error *err) {
    sqlite3_stmt *insert = NULL;
    int row;
    const int has_position = sweep->patching != NULL;
    int status = qkv_database_prepare(
        db, &insert,
        has_position ? "INSERT INTO cells VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
                     : "INSERT INTO cells VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        err);
    qkv_cell cell = QKV_CELL_INIT;
    for (int64_t i = 0; status == QKV_OK && i < qkv_sweep_n_cells(sweep); i++) {
        if (!qkv_sweep_get_cell(sweep, i, &cell)) {
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
        status = qkv_database_step(db, insert, &row, err);
    }
    sqlite3_finalize(insert);
    return status;
}

static int fill_new(qkv_journal *file, const void *sweep, qkv_error *err) {
    const int status = put_prompts(&file->db, sweep, err);
    return status == QKV_OK ? put_cells(&file->db, sweep, err) : status;
}

static int check_old(qkv_journal *file, const void *sweep, qkv_error *err) {
    qkv_sweep_counts counts;
    int status = qkv_sweep_format_check_rows(&file->db, &counts, err);
    if (status == QKV_OK && counts.n_cells != qkv_sweep_n_cells(sweep))
        status =
            qkv_fail(err, QKV_ERR_FORMAT, "%s has %lld cells, and its sweep %lld", file->db.path,
                     (long long)counts.n_cells, (long long)qkv_sweep_n_cells(sweep));
    return status;
}

/* ---- opening and closing ---- */

static int prepare_all(qkv_sweep_writer *r, qkv_error *err) {
    int status = qkv_database_prepare(&r->file.db, &r->insert,
                                      "INSERT OR REPLACE INTO results VALUES (?1, ?2, ?3)", err);
    if (status == QKV_OK)
        status = qkv_database_prepare(&r->file.db, &r->count,
                                      "SELECT count(*) FROM results WHERE cell >= ?1 AND cell < ?2",
                                      err);
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
    const qkv_journal_work work = {
        .kind = &qkv_sweep_journal,
        .format = sweep->patching ? QKV_SWEEP_PATCHING : QKV_SWEEP_PLAIN,
        .model = sweep->model,
        .spec = sweep->json,
        .spec_hash = sweep->hash,
        .shard = shard,
        .fill = fill_new,
        .check = check_old,
        .user = sweep,
    };
    int status = qkv_journal_open(&r->file, path, &work, err);
    if (status == QKV_OK) status = prepare_all(r, err);
    if (status == QKV_OK)
        *out = r;
    else
        qkv_sweep_writer_close(r, NULL);
    return status;
}

int qkv_sweep_writer_close(qkv_sweep_writer *results, qkv_error *err) {
    if (!results) return QKV_OK;
    sqlite3_finalize(results->insert);
    sqlite3_finalize(results->count);
    const int status = qkv_journal_close(&results->file, err);
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
    int status = qkv_database_number(&results->file.db, "SELECT count(*) FROM results", n, err);
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
    int status = qkv_database_step(&results->file.db, results->count, &row, err);
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
        status = qkv_database_step(&r->file.db, r->insert, &row, err);
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
    int status = qkv_journal_begin(&results->file, err);
    if (status != QKV_OK) return status;
    for (int64_t i = 0; i < n && status == QKV_OK; i++)
        status = put_cell(results, first + i, values + (size_t)i * results->sweep->n_metrics, err);
    return qkv_journal_end(&results->file, status, err);
}
