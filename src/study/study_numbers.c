/* The tables of a study as CSV, JSON and SQLite. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/json.h"
#include "base/memory.h"
#include "store/sql_tables.h"
#include "study/study.h"

/* ---- CSV ---- */

static void append_cell(qkv_text *out, const study_value *cell) {
    if (cell->text) {
        qkv_csv_append(out, cell->text);
    } else if (!isnan(cell->number)) {
        qkv_text_append_number(out, cell->number);
    }
}

int qkv_study_csv(const qkv_study *study, const study_look *look, qkv_text *out, qkv_error *err) {
    size_t at = study->numbers_table;
    const int status = look->table ? qkv_study_find_table(study, look->table, &at, err) : QKV_OK;
    if (status != QKV_OK) return status;
    const study_table *table = &study->tables[at];
    for (size_t i = 0; i < table->n_columns; i++) {
        if (i) qkv_text_puts(out, ",");
        qkv_csv_append(out, table->columns[i]);
    }
    qkv_text_puts(out, "\n");
    for (size_t row = 0; row < qkv_study_n_rows(table); row++) {
        const study_value *cells = table->cells + row * table->n_columns;
        for (size_t i = 0; i < table->n_columns; i++) {
            append_cell(out, &cells[i]);
            qkv_text_puts(out, i + 1 < table->n_columns ? "," : "\n");
        }
    }
    return out->failed ? qkv_fail_memory(err) : QKV_OK;
}

/* ---- JSON ---- */

static json_t *table_json(const study_table *table) {
    json_t *columns = json_array(), *rows = json_array();
    for (size_t i = 0; i < table->n_columns; i++)
        qkv_json_push(columns, qkv_json_text(table->columns[i]));
    for (size_t i = 0; i < qkv_study_n_rows(table); i++) {
        const study_value *cells = table->cells + i * table->n_columns;
        json_t *row = json_array();
        qkv_json_push(rows, row);
        for (size_t k = 0; k < table->n_columns; k++)
            qkv_json_push(row, cells[k].text ? qkv_json_text(cells[k].text)
                                             : qkv_json_exact(cells[k].number));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "name", qkv_json_text(table->name), "title",
                     qkv_json_text(table->title), "columns", columns, "rows", rows);
}

static json_t *text_list(char *const *texts, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) qkv_json_push(list, qkv_json_text(texts[i]));
    return list;
}

int qkv_study_json(const qkv_study *study, const study_look *look, qkv_text *out, qkv_error *err) {
    json_t *tables = json_array();
    for (size_t i = 0; i < study->n_tables; i++)
        qkv_json_push(tables, table_json(&study->tables[i]));
    json_t *all = json_pack("{s:s, s:o, s:o, s:o, s:o}", "study", study->kind->name, "title",
                            study->title ? qkv_json_text(study->title) : json_null(), "notes",
                            text_list(study->notes, study->n_notes), "warnings",
                            text_list(study->warnings, study->n_warnings), "tables", tables);
    if (all && !look->no_recipe) {
        char *text = NULL;
        const int status = qkv_study_recipe_with(study, look, &text, err);
        json_t *recipe = text ? qkv_json_parse(text, strlen(text), JSON_ALLOW_NUL, NULL) : NULL;
        free(text);
        if (status != QKV_OK || qkv_json_put(all, "recipe", recipe) != 0) {
            json_decref(all);
            return status != QKV_OK ? status : qkv_fail_memory(err);
        }
    }
    char *text = all ? qkv_json_dump(all, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
    if (text) qkv_text_printf(out, "%s\n", text);
    free(text);
    json_decref(all);
    return text && !out->failed ? QKV_OK : qkv_fail_memory(err);
}

/* ---- SQLite ---- */

_Static_assert(sizeof(sql_cell) == sizeof(study_value), "cells are handed over as they are");

int qkv_study_sqlite(const qkv_study *study, const study_look *look, char **bytes, size_t *n_bytes,
                     qkv_error *err) {
    static const char *const about_columns[] = {"name", "value"};
    const size_t n = study->n_tables;
    char *recipe = NULL;
    sql_table *tables = qkv_calloc(n + 1, sizeof *tables);
    int status = tables ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK && !look->no_recipe)
        status = qkv_study_recipe_with(study, look, &recipe, err);
    const sql_cell about[] = {{0, "study"}, {0, study->kind->name}, {0, "recipe"}, {0, recipe}};
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        const study_table *from = &study->tables[i];
        tables[i] = (sql_table){.name = from->name,
                                .columns = (const char *const *)from->columns,
                                .n_columns = from->n_columns,
                                .n_rows = qkv_study_n_rows(from),
                                .cells = (const sql_cell *)from->cells};
    }
    if (status == QKV_OK) {
        tables[n] = (sql_table){"about", about_columns, 2, recipe ? 2 : 1, about};
        status = qkv_sql_tables_render(tables, n + 1, bytes, n_bytes, err);
    }
    free(recipe);
    free(tables);
    return status;
}
