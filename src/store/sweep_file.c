/*
 * The results file of a sweep, read. See qkv/sweep_file.h.
 *
 * SQLite keeps what was written last in a log beside the file (-wal), and reading that needs a
 * third file (-shm). Where there is no log the file is all there is: it is then opened as one that
 * nobody changes, which works on read-only disks and leaves nothing behind.
 */
#include "qkv/sweep_file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include <sqlite3.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"

static const char FORMAT[] = "qkv sweep 1";
enum { MOST_INDEX = 99999 }; /* of a layer or a head: no model comes near it */

typedef struct name_list {
    char **names;
    size_t n, capacity;
} name_list;

/* X(field of the info, key in the table meta) */
#define META_LIST(X)                                                                               \
    X(model_name, "model_name")                                                                    \
    X(model_path, "model_path")                                                                    \
    X(model_hash, "model_hash")                                                                    \
    X(spec_hash, "spec_hash")

#define META_ENUM(field, key) META_##field,
enum { META_LIST(META_ENUM) META_COUNT };
#undef META_ENUM

struct qkv_sweep_file {
    sqlite3 *db;
    char *path;
    char *meta[META_COUNT];
    name_list metrics, targets, ops;
    qkv_sweep_file_info info;
};

/* ---- SQLite ---- */

static int fail_sqlite(const qkv_sweep_file *file, qkv_error *err) {
    const int code = sqlite3_errcode(file->db);
    if (code == SQLITE_NOMEM) return qkv_fail_memory(err);
    if (code == SQLITE_NOTADB || code == SQLITE_ERROR) { /* the latter: no such table or column */
        return qkv_fail(err, QKV_ERR_FORMAT, "%s is not the results file of a sweep: %s",
                        file->path, sqlite3_errmsg(file->db));
    }
    return qkv_fail(err, QKV_ERR_IO, "cannot read %s: %s", file->path, sqlite3_errmsg(file->db));
}

static int prepare(const qkv_sweep_file *file, sqlite3_stmt **query, const char *sql,
                   qkv_error *err) {
    return sqlite3_prepare_v2(file->db, sql, -1, query, NULL) == SQLITE_OK ? QKV_OK
                                                                           : fail_sqlite(file, err);
}

/* 1: there is a row, 0: there is none, below: a status. */
static int step(const qkv_sweep_file *file, sqlite3_stmt *query, qkv_error *err) {
    const int code = sqlite3_step(query);
    if (code == SQLITE_ROW) return 1;
    return code == SQLITE_DONE ? 0 : fail_sqlite(file, err);
}

static const char *column(sqlite3_stmt *query, int i) {
    const char *text = (const char *)sqlite3_column_text(query, i);
    return text ? text : "";
}

/* ---- opening ---- */

/* A path as SQLite's kind of URI. */
static void append_uri(qkv_text *uri, const char *path) {
    qkv_text_puts(uri, path[0] == '/' ? "file://" : "file:");
    for (const char *c = path; *c; c++) {
        if (qkv_is_letter(*c) || strchr("0123456789/._-", *c)) {
            qkv_text_append(uri, c, 1);
        } else {
            qkv_text_printf(uri, "%%%02X", (unsigned char)*c);
        }
    }
}

static int has_log(const char *path, int *found, qkv_error *err) {
    qkv_text log = {0};
    struct stat facts;
    qkv_text_printf(&log, "%s-wal", path);
    if (!log.failed) *found = stat(log.data, &facts) == 0 && facts.st_size > 0;
    const int failed = log.failed;
    qkv_text_release(&log);
    return failed ? qkv_fail_memory(err) : QKV_OK;
}

static int open_database(qkv_sweep_file *file, qkv_error *err) {
    struct stat facts;
    int logged = 0;
    if (stat(file->path, &facts) != 0) {
        return qkv_fail(err, QKV_ERR_IO, "cannot open %s: %s", file->path, strerror(errno));
    }
    if (!S_ISREG(facts.st_mode)) {
        return qkv_fail(err, QKV_ERR_IO, "cannot open %s: it is not a regular file", file->path);
    }
    int status = has_log(file->path, &logged, err);
    qkv_text uri = {0};
    append_uri(&uri, file->path);
    if (!logged) qkv_text_puts(&uri, "?immutable=1");
    if (status == QKV_OK && uri.failed) status = qkv_fail_memory(err);
    if (status == QKV_OK) {
        const int code =
            sqlite3_open_v2(uri.data, &file->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
        if (!file->db) status = qkv_fail_memory(err);
        if (file->db && code != SQLITE_OK) status = fail_sqlite(file, err);
        if (status == QKV_OK) sqlite3_busy_timeout(file->db, 5000);
    }
    qkv_text_release(&uri);
    return status;
}

/* ---- what the file says about itself ---- */

static int read_meta(qkv_sweep_file *file, char **out, const char *key, qkv_error *err) {
    sqlite3_stmt *query = NULL;
    int status = prepare(file, &query, "SELECT value FROM meta WHERE key = ?", err);
    if (status != QKV_OK) return status;
    sqlite3_bind_text(query, 1, key, -1, SQLITE_STATIC);
    const int found = step(file, query, err);
    if (found < 0) {
        status = found;
    } else if (!(*out = qkv_strdup(found ? column(query, 0) : ""))) {
        status = qkv_fail_memory(err);
    }
    sqlite3_finalize(query);
    return status;
}

static int check_format(qkv_sweep_file *file, qkv_error *err) {
    char *format = NULL;
    int status = read_meta(file, &format, "format", err);
    if (status == QKV_OK && strncmp(format, "qkv sweep", 9) != 0) {
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s is not the results file of a sweep", file->path);
    } else if (status == QKV_OK && strcmp(format, FORMAT) != 0) {
        status = qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s has the format '%s', and '%s' is expected",
                          file->path, format, FORMAT);
    }
    free(format);
    return status;
}

static int read_all_meta(qkv_sweep_file *file, qkv_error *err) {
#define META_KEY(field, key) key,
    static const char *const keys[] = {META_LIST(META_KEY)};
#undef META_KEY
    int status = check_format(file, err);
    for (int i = 0; i < META_COUNT && status == QKV_OK; i++) {
        status = read_meta(file, &file->meta[i], keys[i], err);
    }
    return status;
}

static int read_names(const qkv_sweep_file *file, name_list *list, const char *sql,
                      qkv_error *err) {
    sqlite3_stmt *query = NULL;
    int more, status = prepare(file, &query, sql, err);
    if (status != QKV_OK) return status;
    while ((more = step(file, query, err)) == 1) {
        char *name = qkv_strdup(column(query, 0));
        if (name && QKV_PUSH(list->names, list->capacity, list->n, name)) continue;
        free(name);
        more = qkv_fail_memory(err);
        break;
    }
    sqlite3_finalize(query);
    return more;
}

static int read_count(const qkv_sweep_file *file, size_t *n, const char *sql, qkv_error *err) {
    sqlite3_stmt *query = NULL;
    const int status = prepare(file, &query, sql, err);
    if (status != QKV_OK) return status;
    const int found = step(file, query, err);
    if (found == 1) *n = (size_t)sqlite3_column_int64(query, 0);
    sqlite3_finalize(query);
    return found < 0 ? found : QKV_OK;
}

static int read_lists(qkv_sweep_file *file, qkv_error *err) {
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
    if (status != QKV_OK) return status;
    return read_count(file, &file->info.n_prompts, "SELECT count(*) FROM prompts", err);
}

int qkv_sweep_file_open(qkv_sweep_file **out, const char *path, qkv_error *err) {
    if (!out) return qkv_fail(err, QKV_ERR_ARGUMENT, "no place for the file of a sweep");
    *out = NULL;
    if (!path) return qkv_fail(err, QKV_ERR_ARGUMENT, "no path to the file of a sweep");
    qkv_sweep_file *file = qkv_calloc(1, sizeof *file);
    if (!file) return qkv_fail_memory(err);
    file->path = qkv_strdup(path);
    int status = file->path ? open_database(file, err) : qkv_fail_memory(err);
    if (status == QKV_OK) status = read_all_meta(file, err);
    if (status == QKV_OK) status = read_lists(file, err);
    if (status != QKV_OK) {
        qkv_sweep_file_close(file);
        return status;
    }
    file->info.path = file->path;
#define META_FIELD(field, key) file->info.field = file->meta[META_##field];
    META_LIST(META_FIELD)
#undef META_FIELD
    file->info.n_metrics = file->metrics.n;
    file->info.n_targets = file->targets.n;
    file->info.n_ops = file->ops.n;
    *out = file;
    return QKV_OK;
}

static void release_names(name_list *list) {
    for (size_t i = 0; i < list->n; i++) free(list->names[i]);
    free(list->names);
}

void qkv_sweep_file_close(qkv_sweep_file *file) {
    if (!file) return;
    release_names(&file->metrics);
    release_names(&file->targets);
    release_names(&file->ops);
    for (int i = 0; i < META_COUNT; i++) free(file->meta[i]);
    sqlite3_close(file->db);
    free(file->path);
    free(file);
}

const qkv_sweep_file_info *qkv_sweep_file_get_info(const qkv_sweep_file *file) {
    return &file->info;
}

static const char *name_at(const name_list *list, size_t index) {
    return index < list->n ? list->names[index] : NULL;
}

const char *qkv_sweep_file_metric(const qkv_sweep_file *file, size_t index) {
    return name_at(&file->metrics, index);
}

const char *qkv_sweep_file_target(const qkv_sweep_file *file, size_t index) {
    return name_at(&file->targets, index);
}

const char *qkv_sweep_file_op(const qkv_sweep_file *file, size_t index) {
    return name_at(&file->ops, index);
}

/* ---- rows ---- */

/* Few names and runs of the same one: the last hit is tried first. */
static int32_t find_name(const name_list *list, const char *name, int32_t last) {
    if ((size_t)last < list->n && strcmp(list->names[last], name) == 0) return last;
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->names[i], name) == 0) return (int32_t)i;
    }
    return -1;
}

static double number(sqlite3_stmt *query, int i) {
    const int type = sqlite3_column_type(query, i);
    const int is_number = type == SQLITE_FLOAT || type == SQLITE_INTEGER;
    return is_number ? sqlite3_column_double(query, i) : (double)NAN;
}

static int read_row(const qkv_sweep_file *file, sqlite3_stmt *query, qkv_sweep_row *row,
                    qkv_error *err) {
    const int64_t layer = sqlite3_column_int64(query, 1), head = sqlite3_column_int64(query, 2);
    row->prompt = sqlite3_column_int64(query, 0);
    row->target = find_name(&file->targets, column(query, 3), row->target);
    row->op = find_name(&file->ops, column(query, 4), row->op);
    row->epsilon = number(query, 5);
    row->value = number(query, 6);
    row->missing = sqlite3_column_int(query, 7);
    if (layer < -1 || head < -1 || layer > MOST_INDEX || head > MOST_INDEX || row->target < 0 ||
        row->op < 0) {
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: cell %lld is malformed", file->path,
                        (long long)sqlite3_column_int64(query, 8));
    }
    row->layer = (int32_t)layer;
    row->head = (int32_t)head;
    return QKV_OK;
}

static int collect_rows(const qkv_sweep_file *file, sqlite3_stmt *query, qkv_sweep_row **rows,
                        size_t *n, qkv_error *err) {
    size_t capacity = 0;
    qkv_sweep_row row = {0};
    int more;
    while ((more = step(file, query, err)) == 1) {
        const int status = read_row(file, query, &row, err);
        if (status != QKV_OK) return status;
        if (!QKV_PUSH(*rows, capacity, *n, row)) return qkv_fail_memory(err);
    }
    return more;
}

int qkv_sweep_file_rows(qkv_sweep_file *file, const char *metric, qkv_sweep_row **rows, size_t *n,
                        qkv_error *err) {
    sqlite3_stmt *query = NULL;
    *rows = NULL;
    *n = 0;
    int status = prepare(file, &query,
                         "SELECT c.prompt, c.layer, c.head, c.target, c.op, c.epsilon, r.value,"
                         " r.cell IS NULL, c.id FROM cells c LEFT JOIN results r"
                         " ON r.cell = c.id AND r.metric = ? ORDER BY c.id",
                         err);
    if (status != QKV_OK) return status;
    sqlite3_bind_text(query, 1, metric, -1, SQLITE_STATIC);
    status = collect_rows(file, query, rows, n, err);
    sqlite3_finalize(query);
    if (status == QKV_OK) return QKV_OK;
    qkv_sweep_rows_free(*rows);
    *rows = NULL;
    *n = 0;
    return status;
}

void qkv_sweep_rows_free(qkv_sweep_row *rows) {
    free(rows);
}
