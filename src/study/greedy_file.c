/* The values of a greedy search on disk. A block of candidates is one transaction. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/memory.h"
#include "qkv/model.h"
#include "study/greedy.h"
#include "study/kept_file.h"

#define FORMAT "qkv greedy 1"

struct greedy_file {
    kept_file kept;
    const greedy_task *task;
    sqlite3_stmt *insert, *select;
};

/* ---- what it is for ---- */

static json_t *numbers_of(const int32_t *numbers, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) qkv_json_push(list, json_integer(numbers[i]));
    return list;
}

/* All that values depend on. */
static char *describe(const greedy_task *task, const char *model) {
    json_t *prompts = json_array(), *heads = json_array();
    for (size_t i = 0; i < task->n_prompts; i++)
        qkv_json_push(prompts, numbers_of(task->prompts[i].tokens, task->prompts[i].n_tokens));
    for (size_t i = 0; i < task->n_candidates; i++)
        qkv_json_push(heads, json_pack("[i,i]", (int)task->candidates[i].layer,
                                       (int)task->candidates[i].head));
    json_t *all = json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "format", FORMAT, "model", model,
                            "target", task->target, "op", task->op, "metric", task->metric,
                            "prompts", prompts, "candidates", heads);
    char *text = all ? qkv_json_dump(all, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(all);
    return text;
}

/* ---- opening ---- */

static const kept_kind kind = {
    .what = "a search for heads",
    .other = "the steps of another search",
    .header = "search",
    .table = "tried",
    .columns =
        "step INTEGER NOT NULL, layer INTEGER NOT NULL, head INTEGER NOT NULL, value REAL NOT "
        "NULL, PRIMARY KEY (step, layer, head)",
};

static int open_file(greedy_file *f, qkv_error *err) {
    char hash[33];
    int status = qkv_model_hash(qkv_session_model(f->task->session), hash, err);
    if (status != QKV_OK) return status;
    char *task = describe(f->task, hash);
    if (!task) return qkv_fail_memory(err);
    status = qkv_kept_file_open(&f->kept, &kind, f->task->file, task, err);
    free(task);
    return status;
}

int qkv_greedy_file_open(greedy_file **out, const greedy_task *task, qkv_error *err) {
    greedy_file *f = qkv_calloc(1, sizeof *f);
    *out = f;
    if (!f) return qkv_fail_memory(err);
    f->task = task;
    int status = open_file(f, err);
    if (status == QKV_OK)
        status = qkv_database_prepare(&f->kept.db, &f->insert,
                                      "INSERT OR REPLACE INTO tried VALUES (?1, ?2, ?3, ?4)", err);
    if (status == QKV_OK)
        status = qkv_database_prepare(&f->kept.db, &f->select,
                                      "SELECT layer, head, value FROM tried WHERE step = ?1", err);
    if (status == QKV_OK) return QKV_OK;
    qkv_greedy_file_close(f, NULL);
    *out = NULL;
    return status;
}

int qkv_greedy_file_close(greedy_file *f, qkv_error *err) {
    if (!f) return QKV_OK;
    sqlite3_finalize(f->insert);
    sqlite3_finalize(f->select);
    const int status = qkv_kept_file_close(&f->kept, err);
    free(f);
    return status;
}

/* ---- values ---- */

static size_t find_candidate(const greedy_task *task, int layer, int head) {
    size_t i = 0;
    while (i < task->n_candidates &&
           (task->candidates[i].layer != layer || task->candidates[i].head != head))
        i++;
    return i;
}

int qkv_greedy_file_count(greedy_file *f, int64_t *n, qkv_error *err) {
    char sql[96];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM tried WHERE step < %zu", f->task->n_steps);
    return qkv_database_number(&f->kept.db, sql, n, err);
}

/* Rows that are not of a candidate, or of one that was chosen before, are ignored. */
int qkv_greedy_file_read(greedy_file *f, size_t step, double *values, qkv_error *err) {
    int row = 0, status;
    sqlite3_bind_int64(f->select, 1, (sqlite3_int64)step);
    while ((status = qkv_database_step(&f->kept.db, f->select, &row, err)) == QKV_OK && row) {
        const size_t at = find_candidate(f->task, sqlite3_column_int(f->select, 0),
                                         sqlite3_column_int(f->select, 1));
        const double value = sqlite3_column_double(f->select, 2);
        if (at < f->task->n_candidates && !isnan(values[at])) values[at] = value;
    }
    return status;
}

int qkv_greedy_file_put(greedy_file *f, size_t step, const size_t *candidates, size_t n,
                        const double *values, qkv_error *err) {
    int row, status = qkv_database_run(&f->kept.db, "BEGIN IMMEDIATE", err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        const greedy_head *head = &f->task->candidates[candidates[i]];
        sqlite3_bind_int64(f->insert, 1, (sqlite3_int64)step);
        sqlite3_bind_int(f->insert, 2, head->layer);
        sqlite3_bind_int(f->insert, 3, head->head);
        sqlite3_bind_double(f->insert, 4, values[i]);
        status = qkv_database_step(&f->kept.db, f->insert, &row, err);
    }
    if (status == QKV_OK) status = qkv_database_run(&f->kept.db, "COMMIT", err);
    if (status != QKV_OK) sqlite3_exec(f->kept.db.handle, "ROLLBACK", NULL, NULL, NULL);
    return status;
}
