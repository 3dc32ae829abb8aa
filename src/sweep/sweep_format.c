#include "sweep/sweep_format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* ---- tables ---- */

enum { IN_PLAIN = 1 << QKV_SWEEP_PLAIN, IN_PATCHING = 1 << QKV_SWEEP_PATCHING };

static const qkv_journal_object objects[] = {
    {"table", "prompts", "prompts",
     "CREATE TABLE prompts(id INTEGER PRIMARY KEY, text TEXT, tokens TEXT)",
     IN_PLAIN | IN_PATCHING},
    {"table", "cells", "cells",
     "CREATE TABLE cells(id INTEGER PRIMARY KEY, prompt INTEGER, layer INTEGER, head INTEGER,"
     " target TEXT, op TEXT, epsilon REAL, edit TEXT)",
     IN_PLAIN},
    {"table", "cells", "cells",
     "CREATE TABLE cells(id INTEGER PRIMARY KEY, prompt INTEGER, layer INTEGER, head INTEGER,"
     " target TEXT, op TEXT, epsilon REAL, edit TEXT, position INTEGER)",
     IN_PATCHING},
    {"table", "results", "results",
     "CREATE TABLE results(cell INTEGER, metric TEXT, value REAL, PRIMARY KEY (cell, metric))"
     " WITHOUT ROWID",
     IN_PLAIN | IN_PATCHING},
    {"view", "rows", "rows",
     "CREATE VIEW rows AS SELECT prompt, layer, head, target, op, epsilon, metric, value"
     " FROM cells JOIN results ON results.cell = cells.id",
     IN_PLAIN},
    {"view", "rows", "rows",
     "CREATE VIEW rows AS SELECT prompt, layer, head, position, target, op, epsilon, metric, value"
     " FROM cells JOIN results ON results.cell = cells.id",
     IN_PATCHING},
    /* The prompts of pair i are 2i, clean, and 2i + 1, corrupt; their own cells have no target. */
    {"view", "recovery", "recovery",
     "CREATE VIEW recovery AS WITH unedited AS (SELECT prompt, metric, value FROM rows"
     " WHERE target = 'none') SELECT r.prompt / 2 AS pair, r.layer, r.head, r.position, r.target,"
     " r.op, r.metric, r.value, (r.value - b.value) / (a.value - b.value) AS recovery FROM rows r"
     " JOIN unedited a ON a.prompt = r.prompt / 2 * 2 AND a.metric = r.metric"
     " JOIN unedited b ON b.prompt = r.prompt / 2 * 2 + 1 AND b.metric = r.metric",
     IN_PATCHING},
};

const qkv_journal_kind qkv_sweep_journal = {
    .noun = "sweep",
    .formats = {[QKV_SWEEP_PLAIN] = "qkv sweep 1", [QKV_SWEEP_PATCHING] = "qkv sweep 2"},
    .objects = objects,
    .n_objects = sizeof objects / sizeof *objects,
};

/* ---- rows ---- */

enum { LONGEST_NAME = 200, MOST_META = 1000 };

typedef struct row_check {
    qkv_database *db;
    sqlite3_stmt *query;
    qkv_sweep_counts *counts;
    int64_t cell;  /* of the last result, */
    qkv_text name; /* and its metric; the last key of meta */
} row_check;

static int fail_row(const row_check *check, const char *what, int64_t number, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s %lld is malformed", check->db->path, what,
                    (long long)number);
}

/* A text without a NUL in it; NULL otherwise. */
static const char *text_at(sqlite3_stmt *query, int column, size_t *length) {
    if (sqlite3_column_type(query, column) != SQLITE_TEXT) return NULL;
    const char *text = (const char *)sqlite3_column_text(query, column);
    *length = (size_t)sqlite3_column_bytes(query, column);
    return text && strlen(text) == *length ? text : NULL;
}

static int is_plain(sqlite3_stmt *query, int column) {
    size_t length;
    return text_at(query, column, &length) != NULL;
}

/* Of a target, an operation, a metric: UTF-8 on one line. */
static int is_name(sqlite3_stmt *query, int column) {
    size_t length = 0;
    const char *text = text_at(query, column, &length);
    if (!text || length > LONGEST_NAME || !qkv_utf8_valid(text, length)) return 0;
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 127) return 0;
    }
    return 1;
}

static int is_number(sqlite3_stmt *query, int column, int64_t least, int64_t most) {
    const int64_t value = sqlite3_column_int64(query, column);
    return sqlite3_column_type(query, column) == SQLITE_INTEGER && value >= least && value <= most;
}

static int is_real_or_null(sqlite3_stmt *query, int column) {
    const int type = sqlite3_column_type(query, column);
    return type == SQLITE_NULL || type == SQLITE_FLOAT;
}

/* Whether a name comes after the last one, in whose place it is kept. */
static int comes_after(row_check *check, const char *name) {
    const int after = strcmp(check->name.data, name) < 0;
    check->name.length = 0;
    qkv_text_puts(&check->name, name);
    return after;
}

/* In the order of the keys, and no key twice. */
static int check_meta(row_check *check, int64_t number, qkv_error *err) {
    if (number >= MOST_META || !is_plain(check->query, 0) || !is_plain(check->query, 1))
        return fail_row(check, "row of meta", number, err);
    const int after = comes_after(check, (const char *)sqlite3_column_text(check->query, 0));
    if (check->name.failed) return qkv_fail_memory(err);
    return after || number == 0 ? QKV_OK : fail_row(check, "row of meta", number, err);
}

static int check_prompt(row_check *check, int64_t number, qkv_error *err) {
    sqlite3_stmt *row = check->query;
    check->counts->n_prompts = number + 1;
    if (is_number(row, 0, number, number) &&
        (sqlite3_column_type(row, 1) == SQLITE_NULL || is_plain(row, 1)) && is_plain(row, 2))
        return QKV_OK;
    return fail_row(check, "prompt", number, err);
}

static int check_cell(row_check *check, int64_t number, qkv_error *err) {
    sqlite3_stmt *row = check->query;
    check->counts->n_cells = number + 1;
    if (is_number(row, 0, number, number) && is_number(row, 1, 0, check->counts->n_prompts - 1) &&
        is_number(row, 2, -1, QKV_SWEEP_MOST_INDEX) &&
        is_number(row, 3, -1, QKV_SWEEP_MOST_INDEX) && is_name(row, 4) && is_name(row, 5) &&
        is_real_or_null(row, 6) && isfinite(sqlite3_column_double(row, 6)) && is_name(row, 7) &&
        (check->counts->format == QKV_SWEEP_PLAIN ||
         is_number(row, 8, -1, QKV_SWEEP_MOST_POSITION)))
        return QKV_OK;
    return fail_row(check, "cell", number, err);
}

/* In the order of the primary key, and no key twice: a tree that leads into itself ends here. */
static int check_result(row_check *check, int64_t number, qkv_error *err) {
    sqlite3_stmt *row = check->query;
    const int64_t cell = sqlite3_column_int64(row, 0);
    check->counts->n_rows = number + 1;
    if (!is_number(row, 0, 0, check->counts->n_cells - 1) || !is_name(row, 1) ||
        !is_real_or_null(row, 2))
        return fail_row(check, "result", number, err);
    const int after = comes_after(check, (const char *)sqlite3_column_text(row, 1));
    if (check->name.failed) return qkv_fail_memory(err);
    if (number && (cell < check->cell || (cell == check->cell && !after)))
        return fail_row(check, "result", number, err);
    check->cell = cell;
    return QKV_OK;
}

static int check_rows(row_check *check, const char *sql,
                      int (*one)(row_check *, int64_t, qkv_error *), qkv_error *err) {
    int row = 1;
    check->query = NULL;
    int status = qkv_database_prepare(check->db, &check->query, sql, err);
    for (int64_t i = 0; status == QKV_OK && row; i++) {
        status = qkv_database_step(check->db, check->query, &row, err);
        if (status == QKV_OK && row) status = one(check, i, err);
    }
    sqlite3_finalize(check->query);
    return status;
}

int qkv_sweep_format_check_rows(qkv_database *db, qkv_sweep_counts *counts, qkv_error *err) {
    *counts = (qkv_sweep_counts){0};
    row_check check = {.db = db, .counts = counts};
    qkv_text_puts(&check.name, "");
    int status = check.name.failed
                     ? qkv_fail_memory(err)
                     : qkv_journal_check(db, &qkv_sweep_journal, &counts->format, err);
    if (status == QKV_OK)
        status = check_rows(&check, "SELECT key, value FROM meta NOT INDEXED ORDER BY key",
                            check_meta, err);
    if (status == QKV_OK)
        status = check_rows(&check, "SELECT id, text, tokens FROM prompts ORDER BY id",
                            check_prompt, err);
    if (status == QKV_OK)
        status = check_rows(&check,
                            counts->format == QKV_SWEEP_PATCHING
                                ? "SELECT id, prompt, layer, head, target, op, epsilon, edit,"
                                  " position FROM cells ORDER BY id"
                                : "SELECT id, prompt, layer, head, target, op, epsilon, edit"
                                  " FROM cells ORDER BY id",
                            check_cell, err);
    if (status == QKV_OK)
        status = check_rows(&check, "SELECT cell, metric, value FROM results ORDER BY cell, metric",
                            check_result, err);
    qkv_text_release(&check.name);
    return status;
}
