/*
 * Results as small tables: the mean of a metric over all cells that share a row and a column. Rows
 * and columns are told by a dimension of the sweep.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "study/recipe.h"
#include "sweep/sweep.h"

/* X(name, what is written for a row) */
#define DIMENSION_LIST(X)                                                                          \
    X(PROMPT, "prompt") X(LAYER, "layer") X(HEAD, "head") X(TARGET, "target") X(SETTING, "setting")

#define DIMENSION_ENUM(id, name) DIMENSION_##id,
typedef enum dimension { DIMENSION_LIST(DIMENSION_ENUM) DIMENSION_COUNT } dimension;
#undef DIMENSION_ENUM

#define DIMENSION_NAME(id, name) name,
static const char *const dimension_names[] = {DIMENSION_LIST(DIMENSION_NAME)};
#undef DIMENSION_NAME

static dimension find_dimension(const char *name) {
    int i = 0;
    while (i < DIMENSION_COUNT && (!name || strcmp(name, dimension_names[i]) != 0)) i++;
    return (dimension)i;
}

/* ---- what a table says ---- */

int qkv_recipe_tables_check(const json_t *tables, qkv_error *err) {
    if (tables && !json_is_array(tables)) {
        return qkv_fail(err, QKV_ERR_FORMAT, "the tables of the recipe are not a list");
    }
    for (size_t i = 0; i < json_array_size(tables); i++) {
        const json_t *table = json_array_get(tables, i);
        const json_t *columns = json_object_get(table, "columns");
        if (!json_is_string(json_object_get(table, "metric")) ||
            !json_is_string(json_object_get(table, "title"))) {
            return qkv_fail(err, QKV_ERR_FORMAT, "table %zu of the recipe has no metric or title",
                            i);
        }
        if (find_dimension(json_string_value(json_object_get(table, "rows"))) == DIMENSION_COUNT ||
            (columns && find_dimension(json_string_value(columns)) == DIMENSION_COUNT)) {
            return qkv_fail(err, QKV_ERR_FORMAT,
                            "table %zu of the recipe: rows and columns are prompt, layer, head, "
                            "target or setting",
                            i);
        }
    }
    return QKV_OK;
}

int qkv_recipe_is_measured(const qkv_sweep *sweep, const char *metric) {
    const char *name;
    for (size_t i = 0; (name = qkv_sweep_metric(sweep, i)); i++) {
        if (strcmp(name, metric) == 0) return 1;
    }
    return 0;
}

int qkv_recipe_tables_check_sweep(const json_t *tables, const qkv_sweep *sweep, qkv_error *err) {
    for (size_t i = 0; i < json_array_size(tables); i++) {
        const json_t *table = json_array_get(tables, i);
        const char *metric = json_string_value(json_object_get(table, "metric"));
        if (qkv_recipe_is_measured(sweep, metric)) continue;
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "table '%s' of the recipe shows %s, which is not among the sweep's metrics",
                        json_string_value(json_object_get(table, "title")), metric);
    }
    return QKV_OK;
}

/* ---- means ---- */

static void key_of(char out[RECIPE_KEY_SIZE], const qkv_sweep_reader *file,
                   const qkv_sweep_row *row, dimension by) {
    switch (by) {
    case DIMENSION_PROMPT:
        snprintf(out, RECIPE_KEY_SIZE, "prompt %lld", (long long)row->prompt);
        break;
    case DIMENSION_LAYER:
        snprintf(out, RECIPE_KEY_SIZE, row->layer < 0 ? "all layers" : "layer %d", (int)row->layer);
        break;
    case DIMENSION_HEAD:
        snprintf(out, RECIPE_KEY_SIZE, row->head < 0 ? "all heads" : "head %d", (int)row->head);
        break;
    case DIMENSION_TARGET:
        snprintf(out, RECIPE_KEY_SIZE, "%s", qkv_sweep_reader_target(file, (size_t)row->target));
        break;
    case DIMENSION_SETTING:
        if (isnan(row->epsilon)) {
            snprintf(out, RECIPE_KEY_SIZE, "%s", qkv_sweep_reader_op(file, (size_t)row->op));
        } else {
            qkv_format(out, RECIPE_KEY_SIZE, "%s:%g", qkv_sweep_reader_op(file, (size_t)row->op),
                       row->epsilon);
        }
        break;
    default:
        snprintf(out, RECIPE_KEY_SIZE, "mean");
    }
}

int qkv_recipe_find_key(recipe_keys *keys, const char *text, size_t *index) {
    for (*index = 0; *index < keys->n; ++*index) {
        if (strcmp(keys->texts[*index], text) == 0) return 1;
    }
    if (!qkv_grow((void **)&keys->texts, &keys->capacity, keys->n, sizeof *keys->texts)) return 0;
    snprintf(keys->texts[keys->n++], RECIPE_KEY_SIZE, "%s", text);
    return 1;
}

/* What the cells of a sweep are told apart by. */
typedef struct grouping {
    qkv_sweep_reader *file;
    qkv_sweep_rows *rows;
    dimension by_row, by_column;
} grouping;

static int find_cell(const grouping *g, recipe_table *out, const qkv_sweep_row *cell, size_t *row,
                     size_t *column) {
    char row_key[RECIPE_KEY_SIZE], column_key[RECIPE_KEY_SIZE];
    key_of(row_key, g->file, cell, g->by_row);
    key_of(column_key, g->file, cell, g->by_column);
    return qkv_recipe_find_key(&out->rows, row_key, row) &&
           qkv_recipe_find_key(&out->columns, column_key, column);
}

/* Once to learn the keys, once to add. */
static int add_rows(const grouping *g, recipe_table *out, size_t *counts) {
    qkv_sweep_row cell = QKV_SWEEP_ROW_INIT;
    for (size_t i = 0; qkv_sweep_rows_get(g->rows, i, &cell); i++) {
        size_t r, c;
        if (!find_cell(g, out, &cell, &r, &c)) return 0;
        if (!counts || isnan(cell.value)) continue;
        out->values[r * out->columns.n + c] += cell.value;
        counts[r * out->columns.n + c]++;
    }
    return 1;
}

static int average(const grouping *g, recipe_table *out, qkv_error *err) {
    if (!add_rows(g, out, NULL)) return qkv_fail_memory(err);
    const size_t n = out->rows.n * out->columns.n;
    size_t *counts = qkv_calloc(n, sizeof *counts);
    out->values = qkv_calloc(n, sizeof *out->values);
    const int there = counts && out->values && add_rows(g, out, counts);
    for (size_t i = 0; there && i < n; i++) {
        out->values[i] = counts[i] ? out->values[i] / (double)counts[i] : (double)NAN;
    }
    free(counts);
    return there ? QKV_OK : qkv_fail_memory(err);
}

int qkv_recipe_table_fill(recipe_table *out, const json_t *table, qkv_sweep_reader *file,
                          qkv_error *err) {
    grouping g = {.file = file};
    out->kind = QKV_RECIPE_MEANS;
    out->title = qkv_strdup(json_string_value(json_object_get(table, "title")));
    out->metric = qkv_strdup(json_string_value(json_object_get(table, "metric")));
    if (!out->title || !out->metric) return qkv_fail_memory(err);
    g.by_row = find_dimension(json_string_value(json_object_get(table, "rows")));
    g.by_column = find_dimension(json_string_value(json_object_get(table, "columns")));
    int status = qkv_sweep_reader_rows(file, out->metric, &g.rows, err);
    if (status == QKV_OK) status = average(&g, out, err);
    qkv_sweep_rows_free(g.rows);
    return status;
}
