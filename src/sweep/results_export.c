/* Results as text: CSV or JSON, row by row in canonical order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/text.h"
#include "sweep/results.h"

static const char *const columns[] = {"prompt", "layer",   "head",   "target",
                                      "op",     "epsilon", "metric", "value"};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

static const char rows_query[] =
    "SELECT prompt, layer, head, target, op, epsilon, metric, value FROM cells"
    " JOIN results ON results.cell = cells.id ORDER BY cells.id, metric";

int qkv_results_summarize(const qkv_database *db, qkv_results_summary *summary, qkv_error *err) {
    *summary = (qkv_results_summary){0};
    int status = qkv_database_number(db, "SELECT count(*) FROM cells", &summary->n_cells, err);
    if (status == QKV_OK)
        status = qkv_database_number(db, "SELECT count(*) FROM results", &summary->n_rows, err);
    /* Cells are stored whole. */
    if (status == QKV_OK)
        status = qkv_database_number(db,
                                     "SELECT count(*) FROM cells WHERE NOT EXISTS"
                                     " (SELECT 1 FROM results WHERE cell = id)",
                                     &summary->n_missing, err);
    return status;
}

/* A number as it reads back, a text in quotes where it has to be, nothing for NULL. */
static void append_csv(qkv_text *line, sqlite3_stmt *query, int column) {
    int type = sqlite3_column_type(query, column);
    const char *text = (const char *)sqlite3_column_text(query, column);
    if (type == SQLITE_FLOAT) {
        qkv_text_append_number(line, sqlite3_column_double(query, column));
    } else if (type != SQLITE_NULL && text && strpbrk(text, ",\"\n")) {
        qkv_text_printf(line, "\"%s\"", text); /* operations and metrics hold no quotes */
    } else if (type != SQLITE_NULL) {
        qkv_text_puts(line, text);
    }
}

static void append_json(qkv_text *line, sqlite3_stmt *query, int column) {
    int type = sqlite3_column_type(query, column);
    const char *text = (const char *)sqlite3_column_text(query, column);
    qkv_text_printf(line, "%s\"%s\": ", column ? ", " : "{", columns[column]);
    if (type == SQLITE_NULL)
        qkv_text_puts(line, "null");
    else if (type == SQLITE_FLOAT)
        qkv_text_append_number(line, sqlite3_column_double(query, column));
    else
        qkv_text_printf(line, type == SQLITE_TEXT ? "\"%s\"" : "%s", text);
}

static int write_rows(const qkv_database *db, FILE *file, int json, qkv_error *err) {
    sqlite3_stmt *query = NULL;
    int row = 1, first = 1;
    int status = qkv_database_prepare(db, &query, rows_query, err);
    while (status == QKV_OK && row) {
        qkv_text line = {0};
        status = qkv_database_step(db, query, &row, err);
        for (int i = 0; i < N_COLUMNS && row && status == QKV_OK; i++) {
            if (json) {
                append_json(&line, query, i);
            } else {
                if (i) qkv_text_puts(&line, ",");
                append_csv(&line, query, i);
            }
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

/* {"meta": {...}, "prompts": [...]: what stands before the rows. */
static int write_json_head(const qkv_database *db, FILE *file, qkv_error *err) {
    sqlite3_stmt *query = NULL;
    json_t *meta = json_object(), *prompts = json_array();
    int row = 1;
    int status = meta && prompts ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK)
        status = qkv_database_prepare(db, &query, "SELECT key, value FROM meta ORDER BY key", err);
    while (status == QKV_OK && row) {
        status = qkv_database_step(db, query, &row, err);
        if (row)
            json_object_set_new(meta, (const char *)sqlite3_column_text(query, 0),
                                json_string((const char *)sqlite3_column_text(query, 1)));
    }
    sqlite3_finalize(query);
    query = NULL;
    if (status == QKV_OK)
        status = qkv_database_prepare(db, &query, "SELECT text FROM prompts ORDER BY id", err);
    for (row = 1; status == QKV_OK && row;) {
        status = qkv_database_step(db, query, &row, err);
        const char *text = row ? (const char *)sqlite3_column_text(query, 0) : NULL;
        if (row) json_array_append_new(prompts, text ? json_string(text) : json_null());
    }
    sqlite3_finalize(query);
    if (status == QKV_OK) {
        fputs("{\"meta\": ", file);
        json_dumpf(meta, file, JSON_INDENT(2) | JSON_SORT_KEYS);
        fputs(",\n\"prompts\": ", file);
        json_dumpf(prompts, file, JSON_INDENT(2));
        fputs(",\n\"rows\": [\n", file);
    }
    json_decref(meta);
    json_decref(prompts);
    return status;
}

static int write_all(const qkv_database *db, FILE *file, int json, qkv_error *err) {
    int status = QKV_OK;
    if (json) status = write_json_head(db, file, err);
    for (int i = 0; i < N_COLUMNS && !json; i++)
        fprintf(file, "%s%s", columns[i], i + 1 < N_COLUMNS ? "," : "\n");
    if (status == QKV_OK) status = write_rows(db, file, json, err);
    if (json && status == QKV_OK) fputs("\n]}\n", file);
    return status;
}

int qkv_results_export(const char *path, const char *out, qkv_results_summary *summary,
                       qkv_error *err) {
    const char *suffix = qkv_path_suffix(out);
    int json = strcmp(suffix, "json") == 0;
    if (!json && strcmp(suffix, "csv") != 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%s must end in .csv or .json", out);
    qkv_database db;
    qkv_output file;
    int status = qkv_database_open(&db, path, SQLITE_OPEN_READONLY, err);
    if (status == QKV_OK) status = qkv_results_check_format(&db, err);
    if (status == QKV_OK) status = qkv_results_summarize(&db, summary, err);
    if (status == QKV_OK) status = qkv_output_open(&file, out, err);
    if (status == QKV_OK) {
        status = write_all(&db, file.stream, json, err);
        if (status == QKV_OK)
            status = qkv_output_finish(&file, err);
        else
            qkv_output_abandon(&file);
    }
    qkv_database_close(&db);
    return status;
}
