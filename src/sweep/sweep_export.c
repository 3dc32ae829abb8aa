/* Results as text: CSV or JSON, row by row in canonical order. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sized.h"
#include "base/text.h"
#include "sweep/sweep_format.h"

static const char *const columns[] = {"prompt",  "layer",  "head",  "target",  "op",
                                      "epsilon", "metric", "value", "position"};
enum { N_PLAIN = 8, N_PATCHING = 9 };

static int n_columns(int format) {
    return format == QKV_SWEEP_PATCHING ? N_PATCHING : N_PLAIN;
}

static const char *const queries[] = {
    [QKV_SWEEP_PLAIN] = "SELECT prompt, layer, head, target, op, epsilon, metric, value FROM cells"
                        " JOIN results ON results.cell = cells.id ORDER BY cells.id, metric",
    [QKV_SWEEP_PATCHING] =
        "SELECT prompt, layer, head, target, op, epsilon, metric, value, position FROM cells"
        " JOIN results ON results.cell = cells.id ORDER BY cells.id, metric",
};

int qkv_sweep_format_open(qkv_database *db, const char *path, qkv_sweep_counts *counts,
                          qkv_error *err) {
    int status = qkv_database_open(db, path, QKV_DATABASE_READ, err);
    /* A sweep may continue to write: all that follows sees the file as it is now. */
    if (status == QKV_OK) status = qkv_database_run(db, "BEGIN", err);
    return status == QKV_OK ? qkv_sweep_format_check_rows(db, counts, err) : status;
}

int qkv_sweep_format_n_without(qkv_database *db, int64_t *n, qkv_error *err) {
    /* Cells are stored whole. */
    return qkv_database_number(db,
                               "SELECT count(*) FROM cells WHERE NOT EXISTS"
                               " (SELECT 1 FROM results WHERE cell = id)",
                               n, err);
}

/* ---- fields ---- */

/* A column that is not NULL, as text. SQLite gives none where memory is short: then the line fails. */
static const char *text_of(qkv_text *line, sqlite3_stmt *query, int column) {
    const char *text = (const char *)sqlite3_column_text(query, column);
    if (!text) line->failed = 1;
    return text ? text : "";
}

/* A number as it reads back, nothing for NULL. */
static void append_csv(qkv_text *line, sqlite3_stmt *query, int column) {
    const int type = sqlite3_column_type(query, column);
    if (column) qkv_text_puts(line, ",");
    if (type == SQLITE_FLOAT)
        qkv_text_append_number(line, sqlite3_column_double(query, column));
    else if (type != SQLITE_NULL)
        qkv_csv_append(line, text_of(line, query, column));
}

/* JSON has no number for what is infinite: that is null too. */
static void append_json(qkv_text *line, sqlite3_stmt *query, int column) {
    const int type = sqlite3_column_type(query, column);
    const double number = sqlite3_column_double(query, column);
    qkv_text_printf(line, "%s\"%s\": ", column ? ", " : "{", columns[column]);
    if (type == SQLITE_INTEGER)
        qkv_text_printf(line, "%lld", (long long)sqlite3_column_int64(query, column));
    else if (type == SQLITE_TEXT)
        qkv_json_append(line, text_of(line, query, column));
    else if (type == SQLITE_FLOAT && isfinite(number))
        qkv_text_append_number(line, number);
    else
        qkv_text_puts(line, "null");
}

/* ---- files ---- */

static int write_rows(qkv_database *db, int format, FILE *file, int json, qkv_error *err) {
    sqlite3_stmt *query = NULL;
    int row = 1, first = 1;
    int status = qkv_database_prepare(db, &query, queries[format], err);
    while (status == QKV_OK && row) {
        qkv_text line = {0};
        status = qkv_database_step(db, query, &row, err);
        for (int i = 0; i < n_columns(format) && row && status == QKV_OK; i++) {
            if (json)
                append_json(&line, query, i);
            else
                append_csv(&line, query, i);
        }
        if (line.failed) status = qkv_fail_memory(err);
        if (row && status == QKV_OK)
            fprintf(file, json ? "%s%s}" : "%s%s", json && !first ? ",\n" : "", line.data);
        if (row && !json) putc('\n', file);
        first = 0;
        qkv_text_release(&line);
    }
    sqlite3_finalize(query);
    return status;
}

/* NULL where memory is short. */
static json_t *text_column(sqlite3_stmt *query, int column) {
    if (sqlite3_column_type(query, column) == SQLITE_NULL) return json_null();
    const char *text = (const char *)sqlite3_column_text(query, column);
    return text ? qkv_json_text(text) : NULL;
}

static int read_meta(qkv_database *db, json_t *meta, qkv_error *err) {
    sqlite3_stmt *query = NULL;
    int row = 1;
    int status = qkv_database_prepare(db, &query,
                                      "SELECT key, value FROM meta NOT INDEXED ORDER BY key", err);
    while (status == QKV_OK && row) {
        status = qkv_database_step(db, query, &row, err);
        if (status != QKV_OK || !row) break;
        json_t *key = text_column(query, 0);
        if (qkv_json_put(meta, json_string_value(key), text_column(query, 1)) != 0)
            status = qkv_fail_memory(err);
        json_decref(key);
    }
    sqlite3_finalize(query);
    return status;
}

static int read_prompts(qkv_database *db, json_t *prompts, qkv_error *err) {
    sqlite3_stmt *query = NULL;
    int row = 1;
    int status = qkv_database_prepare(db, &query, "SELECT text FROM prompts ORDER BY id", err);
    while (status == QKV_OK && row) {
        status = qkv_database_step(db, query, &row, err);
        if (status == QKV_OK && row && qkv_json_push(prompts, text_column(query, 0)) != 0)
            status = qkv_fail_memory(err);
    }
    sqlite3_finalize(query);
    return status;
}

/* {"meta": {...}, "prompts": [...]: what stands before the rows. */
static int write_json_head(qkv_database *db, FILE *file, qkv_error *err) {
    json_t *meta = json_object(), *prompts = json_array();
    int status = meta && prompts ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) status = read_meta(db, meta, err);
    if (status == QKV_OK) status = read_prompts(db, prompts, err);
    if (status == QKV_OK) {
        fputs("{\"meta\": ", file);
        int failed = qkv_json_print(meta, file, JSON_INDENT(2) | JSON_SORT_KEYS);
        fputs(",\n\"prompts\": ", file);
        failed |= qkv_json_print(prompts, file, JSON_INDENT(2));
        fputs(",\n\"rows\": [\n", file);
        if (failed) status = qkv_fail_memory(err);
    }
    json_decref(meta);
    json_decref(prompts);
    return status;
}

static int write_all(qkv_database *db, int format, FILE *file, int json, qkv_error *err) {
    const int n = n_columns(format);
    int status = QKV_OK;
    if (json) status = write_json_head(db, file, err);
    for (int i = 0; i < n && !json; i++) fprintf(file, "%s%s", columns[i], i + 1 < n ? "," : "\n");
    if (status == QKV_OK) status = write_rows(db, format, file, json, err);
    if (json && status == QKV_OK) fputs("\n]}\n", file);
    return status;
}

/* The text must not take the place of results, by whatever name. */
static int check_out(const char *out, int *json, qkv_error *err) {
    const char *suffix = qkv_path_suffix(out);
    *json = strcmp(suffix, "json") == 0;
    if (!*json && strcmp(suffix, "csv") != 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%s must end in .csv or .json", out);
    if (qkv_database_is_one(out))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%s is a SQLite database; it is not written over",
                        out);
    return QKV_OK;
}

/* Opens the results, and the output with the path `out`, or in memory where it is NULL. */
static int export_to(qkv_output *file, const char *path, const char *out, int json,
                     qkv_sweep_summary *summary, qkv_error *err) {
    qkv_database db;
    qkv_sweep_counts counts = {0};
    qkv_sweep_summary own = QKV_SWEEP_SUMMARY_INIT;
    int status = qkv_sweep_format_open(&db, path, &counts, err);
    own.n_cells = counts.n_cells;
    own.n_rows = counts.n_rows;
    if (status == QKV_OK) status = qkv_sweep_format_n_without(&db, &own.n_missing, err);
    if (status == QKV_OK) {
        status = out ? qkv_output_open(file, out, err) : qkv_output_open_memory(file, err);
    }
    if (status == QKV_OK) {
        status = write_all(&db, counts.format, file->stream, json, err);
        if (status != QKV_OK) qkv_output_abandon(file);
    }
    qkv_database_close(&db);
    if (status != QKV_OK) return status;
    return qkv_sized_write(summary, &own, sizeof own, "qkv_sweep_summary", err);
}

/* Before anything is opened: whether the caller's struct can be filled. */
static int check_summary(qkv_sweep_summary *summary, qkv_error *err) {
    const qkv_sweep_summary none = QKV_SWEEP_SUMMARY_INIT;
    return qkv_sized_write(summary, &none, sizeof none, "qkv_sweep_summary", err);
}

int qkv_sweep_export(const char *path, const char *out, qkv_sweep_summary *summary,
                     qkv_error *err) {
    int json;
    qkv_output file;
    qkv_sweep_summary own = QKV_SWEEP_SUMMARY_INIT;
    QKV_NEED(err, path);
    QKV_NEED(err, out);
    if (!summary) summary = &own;
    int status = check_summary(summary, err);
    if (status == QKV_OK) status = check_out(out, &json, err);
    if (status == QKV_OK) status = export_to(&file, path, out, json, summary, err);
    return status == QKV_OK ? qkv_output_finish(&file, err) : status;
}

int qkv_sweep_render(const char *path, const char *format, char **bytes, size_t *n_bytes,
                     qkv_sweep_summary *summary, qkv_error *err) {
    qkv_output file;
    qkv_sweep_summary own = QKV_SWEEP_SUMMARY_INIT;
    QKV_NEED(err, bytes);
    QKV_NEED(err, n_bytes);
    *bytes = NULL;
    *n_bytes = 0;
    QKV_NEED(err, path);
    QKV_NEED(err, format);
    const int json = strcmp(format, "json") == 0;
    if (!json && strcmp(format, "csv") != 0) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%s: rows are csv or json", format);
    }
    if (!summary) summary = &own;
    int status = check_summary(summary, err);
    if (status == QKV_OK) status = export_to(&file, path, NULL, json, summary, err);
    return status == QKV_OK ? qkv_output_take(&file, bytes, n_bytes, err) : status;
}
