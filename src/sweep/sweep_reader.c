/*
 * The results file of a sweep, read. See qkv/sweep_reader.h.
 *
 * The whole file is checked when it is opened (sweep/sweep_format.h); rows are looked at again
 * when they are read, since a sweep may have written others meanwhile. Between calls the database
 * is closed: a reader that stayed connected would see an old state, or keep a sweep that ends from
 * folding its log into the file.
 */
#define _XOPEN_SOURCE 700
#include "qkv/sweep_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/sized.h"
#include "sweep/sweep.h"
#include "sweep/sweep_format.h"

typedef struct named {
    const char *name;
    int32_t number;
} named;

typedef struct name_list {
    char **names;
    size_t n, capacity;
    named *sorted; /* by name */
} name_list;

/* X(field of the info, key in the table meta) */
#define META_LIST(X)                                                                               \
    X(model_name, "model_name")                                                                    \
    X(model_path, "model_path")                                                                    \
    X(model_hash, "model_hash")                                                                    \
    X(spec_hash, "spec_hash")                                                                      \
    X(model_notices, "model_notices")                                                              \
    X(model_weights, "model_weights")

#define META_ENUM(field, key) META_##field,
enum { META_LIST(META_ENUM) META_COUNT };
#undef META_ENUM

struct qkv_sweep_reader {
    char *path;      /* as given */
    char *location;  /* from the root: the host may change its directory */
    qkv_database db; /* while something is read */
    char *meta[META_COUNT];
    name_list metrics, targets, ops;
    int format;
    qkv_sweep_reader_info info;
};

static const char *column(sqlite3_stmt *query, int i) {
    const char *text = (const char *)sqlite3_column_text(query, i);
    return text ? text : "";
}

/* ---- what the file says about itself ---- */

static int read_all_meta(qkv_sweep_reader *file, qkv_error *err) {
#define META_KEY(field, key) key,
    static const char *const keys[] = {META_LIST(META_KEY)};
#undef META_KEY
    int status = QKV_OK;
    for (int i = 0; i < META_COUNT && status == QKV_OK; i++) {
        status = qkv_journal_meta(&file->db, keys[i], &file->meta[i], err);
        if (status == QKV_OK && !file->meta[i] && !(file->meta[i] = qkv_strdup(""))) {
            status = qkv_fail_memory(err);
        }
    }
    return status;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

static int sort_names(name_list *list, qkv_error *err) {
    if (list->n == 0) return QKV_OK;
    list->sorted = qkv_calloc(list->n, sizeof *list->sorted);
    if (!list->sorted) return qkv_fail_memory(err);
    for (size_t i = 0; i < list->n; i++) list->sorted[i] = (named){list->names[i], (int32_t)i};
    qsort(list->sorted, list->n, sizeof *list->sorted, by_name);
    return QKV_OK;
}

static int read_names(qkv_sweep_reader *file, name_list *list, const char *sql, qkv_error *err) {
    sqlite3_stmt *query = NULL;
    int row = 1, status = qkv_database_prepare(&file->db, &query, sql, err);
    while (status == QKV_OK && row) {
        status = qkv_database_step(&file->db, query, &row, err);
        if (status != QKV_OK || !row) break;
        char *name = qkv_strdup(column(query, 0));
        if (name && QKV_PUSH(list->names, list->capacity, list->n, name)) continue;
        free(name);
        status = qkv_fail_memory(err);
    }
    sqlite3_finalize(query);
    return status == QKV_OK ? sort_names(list, err) : status;
}

static int read_lists(qkv_sweep_reader *file, qkv_error *err) {
    int status = read_names(file, &file->targets,
                            "SELECT target FROM cells GROUP BY target ORDER BY min(id)", err);
    if (status == QKV_OK) {
        status =
            read_names(file, &file->ops, "SELECT op FROM cells GROUP BY op ORDER BY min(id)", err);
    }
    if (status == QKV_OK) {
        status = read_names(file, &file->metrics,
                            "SELECT DISTINCT metric FROM results ORDER BY metric", err);
    }
    return status;
}

static int read_head(qkv_sweep_reader *file, qkv_sweep_counts *counts, qkv_error *err) {
    int status = qkv_database_open(&file->db, file->path, QKV_DATABASE_READ, err);
    if (status == QKV_OK) status = qkv_sweep_format_check_rows(&file->db, counts, err);
    if (status == QKV_OK) status = read_all_meta(file, err);
    if (status == QKV_OK) status = read_lists(file, err);
    qkv_database_close(&file->db);
    if (status == QKV_OK && !(file->location = realpath(file->path, NULL))) {
        status = qkv_fail(err, QKV_ERR_IO, "%s is gone", file->path);
    }
    return status;
}

int qkv_sweep_reader_open(qkv_sweep_reader **out, const char *path, qkv_error *err) {
    if (!out) return qkv_fail(err, QKV_ERR_ARGUMENT, "no place for the file of a sweep");
    *out = NULL;
    if (!path) return qkv_fail(err, QKV_ERR_ARGUMENT, "no path to the file of a sweep");
    qkv_sweep_reader *file = qkv_calloc(1, sizeof *file);
    if (!file) return qkv_fail_memory(err);
    qkv_sweep_counts counts = {0};
    file->path = qkv_strdup(path);
    const int status = file->path ? read_head(file, &counts, err) : qkv_fail_memory(err);
    if (status != QKV_OK) {
        qkv_sweep_reader_close(file);
        return status;
    }
    file->info.path = file->path;
    file->info.n_prompts = (size_t)counts.n_prompts;
#define META_FIELD(field, key) file->info.field = file->meta[META_##field];
    META_LIST(META_FIELD)
#undef META_FIELD
    file->info.n_metrics = file->metrics.n;
    file->info.n_targets = file->targets.n;
    file->info.n_ops = file->ops.n;
    file->format = counts.format;
    file->info.patches = counts.format == QKV_SWEEP_PATCHING;
    *out = file;
    return QKV_OK;
}

static void release_names(name_list *list) {
    for (size_t i = 0; i < list->n; i++) free(list->names[i]);
    free(list->names);
    free(list->sorted);
}

void qkv_sweep_reader_close(qkv_sweep_reader *file) {
    if (!file) return;
    release_names(&file->metrics);
    release_names(&file->targets);
    release_names(&file->ops);
    for (int i = 0; i < META_COUNT; i++) free(file->meta[i]);
    free(file->path);
    free(file->location);
    free(file);
}

const qkv_sweep_reader_info *qkv_sweep_reader_get_info(const qkv_sweep_reader *file) {
    return file ? &file->info : NULL;
}

static const char *name_at(const name_list *list, size_t index) {
    return index < list->n ? list->names[index] : NULL;
}

const char *qkv_sweep_reader_metric(const qkv_sweep_reader *file, size_t index) {
    return file ? name_at(&file->metrics, index) : NULL;
}

const char *qkv_sweep_reader_target(const qkv_sweep_reader *file, size_t index) {
    return file ? name_at(&file->targets, index) : NULL;
}

const char *qkv_sweep_reader_op(const qkv_sweep_reader *file, size_t index) {
    return file ? name_at(&file->ops, index) : NULL;
}

/* ---- rows ---- */

/* Runs of the same name are usual: the last hit is tried first. */
static int32_t find_name(const name_list *list, const char *name, int32_t last) {
    if ((size_t)last < list->n && strcmp(list->names[last], name) == 0) return last;
    const named key = {.name = name};
    const named *found = list->n ? bsearch(&key, list->sorted, list->n, sizeof key, by_name) : NULL;
    return found ? found->number : -1;
}

static double number(sqlite3_stmt *query, int i) {
    const int type = sqlite3_column_type(query, i);
    const int is_number = type == SQLITE_FLOAT || type == SQLITE_INTEGER;
    return is_number ? sqlite3_column_double(query, i) : (double)NAN;
}

static int read_row(const qkv_sweep_reader *file, sqlite3_stmt *query, qkv_sweep_row *row,
                    qkv_error *err) {
    const int64_t layer = sqlite3_column_int64(query, 1), head = sqlite3_column_int64(query, 2);
    row->prompt = sqlite3_column_int64(query, 0);
    row->target = find_name(&file->targets, column(query, 3), row->target);
    row->op = find_name(&file->ops, column(query, 4), row->op);
    row->epsilon = number(query, 5);
    row->value = number(query, 6);
    row->missing = sqlite3_column_int(query, 7);
    row->position = sqlite3_column_int64(query, 9);
    if (layer < -1 || head < -1 || layer > QKV_SWEEP_MOST_INDEX || head > QKV_SWEEP_MOST_INDEX ||
        row->target < 0 || row->op < 0) {
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: cell %lld is malformed", file->path,
                        (long long)sqlite3_column_int64(query, 8));
    }
    row->layer = (int32_t)layer;
    row->head = (int32_t)head;
    return QKV_OK;
}

struct qkv_sweep_rows {
    qkv_sweep_row *rows;
    size_t n, capacity;
};

static int collect_rows(const qkv_sweep_reader *file, sqlite3_stmt *query, qkv_sweep_rows *all,
                        qkv_error *err) {
    qkv_sweep_row row = QKV_SWEEP_ROW_INIT;
    int more = 1, status = QKV_OK;
    while (status == QKV_OK && more) {
        status = qkv_database_step(&file->db, query, &more, err);
        if (status != QKV_OK || !more) break;
        status = read_row(file, query, &row, err);
        if (status == QKV_OK && !QKV_PUSH(all->rows, all->capacity, all->n, row))
            status = qkv_fail_memory(err);
    }
    return status;
}

static int select_rows(qkv_sweep_reader *file, const char *metric, qkv_sweep_rows *rows,
                       qkv_error *err) {
    sqlite3_stmt *query = NULL;
    static const char *const queries[] = {
        [QKV_SWEEP_PLAIN] = "SELECT c.prompt, c.layer, c.head, c.target, c.op, c.epsilon, r.value,"
                            " r.cell IS NULL, c.id, -1 FROM cells c LEFT JOIN results r"
                            " ON r.cell = c.id AND r.metric = ? ORDER BY c.id",
        [QKV_SWEEP_PATCHING] =
            "SELECT c.prompt, c.layer, c.head, c.target, c.op, c.epsilon, r.value,"
            " r.cell IS NULL, c.id, c.position FROM cells c LEFT JOIN results r"
            " ON r.cell = c.id AND r.metric = ? ORDER BY c.id"};
    int status = qkv_database_prepare(&file->db, &query, queries[file->format], err);
    if (status == QKV_OK) {
        sqlite3_bind_text(query, 1, metric, -1, SQLITE_STATIC);
        status = collect_rows(file, query, rows, err);
    }
    sqlite3_finalize(query);
    return status;
}

/* Another sweep may have taken the name. */
static int check_same(qkv_sweep_reader *file, qkv_error *err) {
    char *hash = NULL;
    int format;
    int status = qkv_journal_check(&file->db, &qkv_sweep_journal, &format, err);
    if (status == QKV_OK) status = qkv_journal_meta(&file->db, "spec_hash", &hash, err);
    if (status == QKV_OK && strcmp(hash ? hash : "", file->info.spec_hash) != 0) {
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s was replaced by another sweep", file->path);
    }
    free(hash);
    return status;
}

/* Metrics come with the first results, all of them at once. */
static int read_new_metrics(qkv_sweep_reader *file, qkv_error *err) {
    if (file->metrics.n) return QKV_OK;
    const int status = read_names(file, &file->metrics,
                                  "SELECT DISTINCT metric FROM results ORDER BY metric", err);
    file->info.n_metrics = file->metrics.n;
    return status;
}

/* All of it as it is at one moment. */
static int read_rows(qkv_sweep_reader *file, const char *metric, qkv_sweep_rows *rows,
                     qkv_error *err) {
    int status = qkv_database_open(&file->db, file->location, QKV_DATABASE_READ, err);
    if (status == QKV_OK) status = qkv_database_run(&file->db, "BEGIN", err);
    if (status == QKV_OK) status = check_same(file, err);
    if (status == QKV_OK) status = read_new_metrics(file, err);
    if (status == QKV_OK) status = select_rows(file, metric, rows, err);
    qkv_database_close(&file->db);
    return status;
}

/* Whether the file was changed since `before`, which is brought up to date. A file without a log is
 * read without locks (store/database.c), and must then have stayed as it was. */
static int has_changed(const qkv_sweep_reader *file, struct stat *before) {
    struct stat now = {0};
    const struct stat was = *before;
    int logged = 0;
    if (stat(file->location, &now) != 0) return 0;
    *before = now;
    if (qkv_database_has_log(file->location, &logged, NULL) != QKV_OK) return 0;
    return logged || now.st_ino != was.st_ino || now.st_size != was.st_size ||
           now.st_mtim.tv_sec != was.st_mtim.tv_sec || now.st_mtim.tv_nsec != was.st_mtim.tv_nsec;
}

/* A file that changed while it was read is read again. */
static int read_steady_rows(qkv_sweep_reader *file, const char *metric, qkv_sweep_rows *rows,
                            qkv_error *err) {
    enum { TRIES = 3 };
    struct stat seen = {0};
    int logged = 0, status = QKV_OK;
    for (int i = 0; i < TRIES; i++) {
        has_changed(file, &seen);
        free(rows->rows);
        *rows = (qkv_sweep_rows){0};
        status = qkv_database_has_log(file->location, &logged, err);
        if (status == QKV_OK) status = read_rows(file, metric, rows, err);
        if (logged || !has_changed(file, &seen)) break;
    }
    return status;
}

int qkv_sweep_reader_rows(qkv_sweep_reader *file, const char *metric, qkv_sweep_rows **out,
                          qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, file);
    QKV_NEED(err, metric);
    qkv_sweep_rows *rows = qkv_calloc(1, sizeof *rows);
    if (!rows) return qkv_fail_memory(err);
    const int status = read_steady_rows(file, metric, rows, err);
    if (status != QKV_OK) {
        qkv_sweep_rows_free(rows);
        return status;
    }
    *out = rows;
    return QKV_OK;
}

/* ---- prompts ---- */

/* "[1,20,30]" */
static int parse_tokens(const char *text, int32_t **tokens, size_t *n_tokens) {
    json_t *list = qkv_json_parse(text, strlen(text), 0, NULL);
    const size_t n = json_array_size(list);
    int32_t *own = n ? qkv_calloc(n, sizeof *own) : NULL;
    int fits = own != NULL;
    for (size_t i = 0; i < n && fits; i++) {
        const json_t *item = json_array_get(list, i);
        const json_int_t token = json_integer_value(item);
        fits = json_is_integer(item) && token >= 0 && token <= INT32_MAX;
        own[i] = (int32_t)token;
    }
    json_decref(list);
    if (!fits) return free(own), 0;
    *tokens = own;
    *n_tokens = n;
    return 1;
}

static int select_prompt(qkv_sweep_reader *file, int64_t prompt, int32_t **tokens, size_t *n_tokens,
                         qkv_error *err) {
    sqlite3_stmt *query = NULL;
    int row = 0;
    int status =
        qkv_database_prepare(&file->db, &query, "SELECT tokens FROM prompts WHERE id = ?", err);
    if (status == QKV_OK) sqlite3_bind_int64(query, 1, prompt);
    if (status == QKV_OK) status = qkv_database_step(&file->db, query, &row, err);
    if (status == QKV_OK && !(row && parse_tokens(column(query, 0), tokens, n_tokens))) {
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s has no tokens of a prompt %lld", file->path,
                          (long long)prompt);
    }
    sqlite3_finalize(query);
    return status;
}

int qkv_sweep_reader_prompt(qkv_sweep_reader *file, int64_t prompt, int32_t **tokens,
                            size_t *n_tokens, qkv_error *err) {
    QKV_NEED(err, tokens);
    QKV_NEED(err, n_tokens);
    *tokens = NULL;
    *n_tokens = 0;
    QKV_NEED(err, file);
    int status = qkv_database_open(&file->db, file->location, QKV_DATABASE_READ, err);
    if (status == QKV_OK) status = check_same(file, err);
    if (status == QKV_OK) status = select_prompt(file, prompt, tokens, n_tokens, err);
    qkv_database_close(&file->db);
    return status;
}

size_t qkv_sweep_rows_count(const qkv_sweep_rows *rows) {
    return rows ? rows->n : 0;
}

int qkv_sweep_rows_get(const qkv_sweep_rows *rows, size_t index, qkv_sweep_row *row) {
    if (!rows || !row || index >= rows->n) return 0;
    return qkv_sized_write(row, &rows->rows[index], sizeof *row, "qkv_sweep_row", NULL) == QKV_OK;
}

void qkv_sweep_rows_free(qkv_sweep_rows *rows) {
    if (!rows) return;
    free(rows->rows);
    free(rows);
}
