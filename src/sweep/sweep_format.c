#include "sweep/sweep_format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* ---- tables ---- */

enum { IN_PLAIN = 1 << QKV_SWEEP_PLAIN, IN_PATCHING = 1 << QKV_SWEEP_PATCHING };

static const struct {
    unsigned formats; /* that have it */
    const char *type, *name, *table, *sql;
} objects[] = {
    {IN_PLAIN | IN_PATCHING, "table", "meta", "meta",
     "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT)"},
    {IN_PLAIN | IN_PATCHING, "table", "prompts", "prompts",
     "CREATE TABLE prompts(id INTEGER PRIMARY KEY, text TEXT, tokens TEXT)"},
    {IN_PLAIN, "table", "cells", "cells",
     "CREATE TABLE cells(id INTEGER PRIMARY KEY, prompt INTEGER, layer INTEGER, head INTEGER,"
     " target TEXT, op TEXT, epsilon REAL, edit TEXT)"},
    {IN_PATCHING, "table", "cells", "cells",
     "CREATE TABLE cells(id INTEGER PRIMARY KEY, prompt INTEGER, layer INTEGER, head INTEGER,"
     " target TEXT, op TEXT, epsilon REAL, edit TEXT, position INTEGER)"},
    {IN_PLAIN | IN_PATCHING, "table", "results", "results",
     "CREATE TABLE results(cell INTEGER, metric TEXT, value REAL, PRIMARY KEY (cell, metric))"
     " WITHOUT ROWID"},
    {IN_PLAIN, "view", "rows", "rows",
     "CREATE VIEW rows AS SELECT prompt, layer, head, target, op, epsilon, metric, value"
     " FROM cells JOIN results ON results.cell = cells.id"},
    {IN_PATCHING, "view", "rows", "rows",
     "CREATE VIEW rows AS SELECT prompt, layer, head, position, target, op, epsilon, metric, value"
     " FROM cells JOIN results ON results.cell = cells.id"},
    /* The prompts of pair i are 2i, clean, and 2i + 1, corrupt; their own cells have no target. */
    {IN_PATCHING, "view", "recovery", "recovery",
     "CREATE VIEW recovery AS WITH unedited AS (SELECT prompt, metric, value FROM rows"
     " WHERE target = 'none') SELECT r.prompt / 2 AS pair, r.layer, r.head, r.position, r.target,"
     " r.op, r.metric, r.value, (r.value - b.value) / (a.value - b.value) AS recovery FROM rows r"
     " JOIN unedited a ON a.prompt = r.prompt / 2 * 2 AND a.metric = r.metric"
     " JOIN unedited b ON b.prompt = r.prompt / 2 * 2 + 1 AND b.metric = r.metric"},
    {IN_PLAIN | IN_PATCHING, "index", "sqlite_autoindex_meta_1", "meta",
     NULL}, /* SQLite's own, of the primary key */
};
enum { META, N_OBJECTS = sizeof objects / sizeof *objects };

static const char *const names[] = {
    [QKV_SWEEP_PLAIN] = "qkv sweep 1", [QKV_SWEEP_PATCHING] = "qkv sweep 2"};

const char *qkv_sweep_format_name(qkv_sweep_format format) {
    return names[format];
}

int qkv_sweep_format_make_tables(qkv_database *db, qkv_sweep_format format, qkv_error *err) {
    int status = QKV_OK;
    for (int i = 0; i < N_OBJECTS && status == QKV_OK; i++) {
        if (objects[i].sql && objects[i].formats & 1u << format)
            status = qkv_database_run(db, objects[i].sql, err);
    }
    return status;
}

static int is_text(sqlite3_stmt *query, int column, const char *wanted) {
    const char *text = (const char *)sqlite3_column_text(query, column);
    if (!text || !wanted) return !text && !wanted;
    return strcmp(text, wanted) == 0;
}

/* Which of the objects a row of sqlite_schema is, or -1. */
static int find_object(sqlite3_stmt *query) {
    for (int i = 0; i < N_OBJECTS; i++) {
        if (is_text(query, 0, objects[i].type) && is_text(query, 1, objects[i].name) &&
            is_text(query, 2, objects[i].table) && is_text(query, 3, objects[i].sql))
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
static int list_objects(qkv_database *db, unsigned *found, qkv_text *other, qkv_error *err) {
    sqlite3_stmt *query = NULL;
    int row = 1;
    int status = qkv_database_prepare(db, &query,
                                      "SELECT type, name, tbl_name, sql FROM sqlite_schema", err);
    while (status == QKV_OK && row && !other->length) {
        status = qkv_database_step(db, query, &row, err);
        if (status != QKV_OK || !row) break;
        const int object = find_object(query);
        if (object >= 0 && !(*found & 1u << object)) {
            *found |= 1u << object;
        } else {
            qkv_text_puts(other, "it has a ");
            append_column(other, query, 0);
            qkv_text_puts(other, " '");
            append_column(other, query, 1);
            qkv_text_puts(other, "' that no sweep makes");
        }
    }
    sqlite3_finalize(query);
    return status == QKV_OK && other->failed ? qkv_fail_memory(err) : status;
}

static int check_tables(const qkv_database *db, qkv_sweep_format format, unsigned found,
                        const qkv_text *other, qkv_error *err) {
    if (other->length)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s is not the results file of a sweep: %s", db->path,
                        other->data);
    for (int i = 0; i < N_OBJECTS; i++) {
        const int wanted = (objects[i].formats & 1u << format) != 0,
                  is_there = (found & 1u << i) != 0;
        if (wanted == is_there) continue;
        if (is_there)
            return qkv_fail(err, QKV_ERR_FORMAT,
                            "%s is not the results file of a sweep: its %s '%s' is of another "
                            "format",
                            db->path, objects[i].type, objects[i].name);
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s is not the results file of a sweep: it has no %s '%s'", db->path,
                        objects[i].type, objects[i].name);
    }
    return QKV_OK;
}

/* What names itself a sweep of another format may have other tables. */
static int read_format_name(qkv_database *db, qkv_sweep_format *format, qkv_error *err) {
    char *name = NULL;
    int status = qkv_sweep_format_meta(db, "format", &name, err);
    if (status == QKV_OK && (!name || strncmp(name, "qkv sweep", 9) != 0)) {
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s is not the results file of a sweep", db->path);
    } else if (status == QKV_OK && strcmp(name, names[QKV_SWEEP_PATCHING]) == 0) {
        *format = QKV_SWEEP_PATCHING;
    } else if (status == QKV_OK && strcmp(name, names[QKV_SWEEP_PLAIN]) != 0) {
        status = qkv_fail(err, QKV_ERR_UNSUPPORTED,
                          "%s has the format '%.40s', and '%s' or '%s' is expected", db->path, name,
                          names[QKV_SWEEP_PLAIN], names[QKV_SWEEP_PATCHING]);
    }
    free(name);
    return status;
}

/* Order and merging would depend on it. */
static int check_encoding(qkv_database *db, qkv_error *err) {
    char *encoding = NULL;
    int status = qkv_database_text(db, "PRAGMA encoding", NULL, &encoding, err);
    if (status == QKV_OK && (!encoding || strcmp(encoding, "UTF-8") != 0))
        status =
            qkv_fail(err, QKV_ERR_FORMAT,
                     "%s is not the results file of a sweep: its texts are not UTF-8", db->path);
    free(encoding);
    return status;
}

int qkv_sweep_format_check(qkv_database *db, qkv_sweep_format *format, qkv_error *err) {
    unsigned found = 0;
    *format = QKV_SWEEP_PLAIN;
    qkv_text other = {0};
    int status = check_encoding(db, err);
    if (status == QKV_OK) status = list_objects(db, &found, &other, err);
    if (status == QKV_OK && found & 1u << META) status = read_format_name(db, format, err);
    if (status == QKV_OK) status = check_tables(db, *format, found, &other, err);
    qkv_text_release(&other);
    return status;
}

int qkv_sweep_writer_is_blank(qkv_database *db, int *blank, qkv_error *err) {
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

int qkv_sweep_format_meta(qkv_database *db, const char *key, char **value, qkv_error *err) {
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
    int status =
        check.name.failed ? qkv_fail_memory(err) : qkv_sweep_format_check(db, &counts->format, err);
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
