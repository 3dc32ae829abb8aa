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

/* ---- means ---- */

/* What stands before a row or above a column. */
typedef struct key {
    char text[RECIPE_KEY_SIZE];
    double number; /* of a prompt, layer or head; NaN: all together */
} key;

typedef struct key_list {
    key *items;
    size_t n, capacity;
} key_list;

/* Numbers stand in a row by themselves; above a column with what they are of. */
static void key_of(key *out, const qkv_sweep_reader *file, const qkv_sweep_row *row, dimension by) {
    static const char *const units[] = {"prompt", "layer", "head"};
    const double numbers[] = {(double)row->prompt, row->layer, row->head};
    out->number = (double)NAN;
    if (by <= DIMENSION_HEAD) {
        const double number = numbers[by];
        if (number < 0)
            snprintf(out->text, sizeof out->text, "all_%ss", units[by]);
        else
            qkv_format(out->text, sizeof out->text, "%s_%.0f", units[by], out->number = number);
    } else if (by == DIMENSION_TARGET) {
        snprintf(out->text, sizeof out->text, "%s",
                 qkv_sweep_reader_target(file, (size_t)row->target));
    } else if (by == DIMENSION_COUNT) {
        snprintf(out->text, sizeof out->text, "mean");
    } else if (isnan(row->epsilon)) {
        snprintf(out->text, sizeof out->text, "%s", qkv_sweep_reader_op(file, (size_t)row->op));
    } else {
        qkv_format(out->text, sizeof out->text, "%s:%g", qkv_sweep_reader_op(file, (size_t)row->op),
                   row->epsilon);
    }
}

/* The index of a key, which is added when it is new; 0 when memory is short. */
static int find_key(key_list *list, const key *wanted, size_t *index) {
    for (*index = 0; *index < list->n; ++*index) {
        if (strcmp(list->items[*index].text, wanted->text) == 0) return 1;
    }
    return QKV_PUSH(list->items, list->capacity, list->n, *wanted);
}

/* Sums and then means of the cells that share a row and a column. */
typedef struct means {
    qkv_sweep_reader *file;
    qkv_sweep_rows *cells;
    dimension by_row, by_column;
    key_list rows, columns;
    double *values;
    size_t *counts;
} means;

/* Once to learn the keys, once to add. */
static int add_cells(means *m) {
    qkv_sweep_row cell = QKV_SWEEP_ROW_INIT;
    for (size_t i = 0; qkv_sweep_rows_get(m->cells, i, &cell); i++) {
        key row, column;
        size_t r, c;
        key_of(&row, m->file, &cell, m->by_row);
        key_of(&column, m->file, &cell, m->by_column);
        if (!find_key(&m->rows, &row, &r) || !find_key(&m->columns, &column, &c)) return 0;
        if (!m->counts || isnan(cell.value)) continue;
        m->values[r * m->columns.n + c] += cell.value;
        m->counts[r * m->columns.n + c]++;
    }
    return 1;
}

static int average(means *m, qkv_error *err) {
    if (!add_cells(m)) return qkv_fail_memory(err);
    const size_t n = m->rows.n * m->columns.n;
    m->values = qkv_calloc(n, sizeof *m->values);
    m->counts = qkv_calloc(n, sizeof *m->counts);
    if (!m->values || !m->counts || !add_cells(m)) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        m->values[i] = m->counts[i] ? m->values[i] / (double)m->counts[i] : (double)NAN;
    return QKV_OK;
}

/* ---- the table ---- */

static int add_rows(qkv_study *study, const means *m, study_value *row, qkv_error *err) {
    int status = QKV_OK;
    for (size_t r = 0; r < m->rows.n && status == QKV_OK; r++) {
        const key *name = &m->rows.items[r];
        row[0] = m->by_row <= DIMENSION_HEAD ? STUDY_NUMBER(name->number) : STUDY_TEXT(name->text);
        for (size_t c = 0; c < m->columns.n; c++)
            row[1 + c] = STUDY_NUMBER(m->values[r * m->columns.n + c]);
        status = qkv_study_add_row(study, row, err);
    }
    return status;
}

static int add_table(qkv_study *study, const json_t *table, size_t number, const means *m,
                     qkv_error *err) {
    const size_t n = 1 + m->columns.n;
    char name[32];
    const char **columns = qkv_calloc(n, sizeof *columns);
    study_value *row = qkv_calloc(n, sizeof *row);
    int status = columns && row ? QKV_OK : qkv_fail_memory(err);
    snprintf(name, sizeof name, "table_%zu", number + 1);
    if (status == QKV_OK) {
        columns[0] = dimension_names[m->by_row];
        for (size_t c = 0; c < m->columns.n; c++) columns[1 + c] = m->columns.items[c].text;
        status = qkv_study_add_table(
            study, name, json_string_value(json_object_get(table, "title")), columns, n, err);
    }
    if (status == QKV_OK) status = add_rows(study, m, row, err);
    free(columns);
    free(row);
    return status;
}

int qkv_recipe_add_means(qkv_study *study, const json_t *table, size_t number,
                         qkv_sweep_reader *file, qkv_error *err) {
    means m = {.file = file,
               .by_row = find_dimension(json_string_value(json_object_get(table, "rows"))),
               .by_column = find_dimension(json_string_value(json_object_get(table, "columns")))};
    int status = qkv_sweep_reader_rows(file, json_string_value(json_object_get(table, "metric")),
                                       &m.cells, err);
    if (status == QKV_OK) status = average(&m, err);
    if (status == QKV_OK) status = add_table(study, table, number, &m, err);
    qkv_sweep_rows_free(m.cells);
    free(m.rows.items);
    free(m.columns.items);
    free(m.values);
    free(m.counts);
    return status;
}
