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
#include "cli/recipe.h"

enum { KEY_SIZE = 64 };

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

int recipe_tables_check(const json_t *tables, qkv_error *err) {
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

typedef struct keys {
    char (*texts)[KEY_SIZE];
    size_t n, capacity;
} keys;

typedef struct means {
    keys rows, columns;
    double *sums; /* rows x columns, once both are known */
    size_t *counts;
} means;

static void key_of(char out[KEY_SIZE], const qkv_sweep_reader *file, const qkv_sweep_row *row,
                   dimension by) {
    switch (by) {
    case DIMENSION_PROMPT:
        snprintf(out, KEY_SIZE, "prompt %lld", (long long)row->prompt);
        break;
    case DIMENSION_LAYER:
        snprintf(out, KEY_SIZE, row->layer < 0 ? "all layers" : "layer %d", (int)row->layer);
        break;
    case DIMENSION_HEAD:
        snprintf(out, KEY_SIZE, row->head < 0 ? "all heads" : "head %d", (int)row->head);
        break;
    case DIMENSION_TARGET:
        snprintf(out, KEY_SIZE, "%s", qkv_sweep_reader_target(file, (size_t)row->target));
        break;
    case DIMENSION_SETTING:
        if (isnan(row->epsilon)) {
            snprintf(out, KEY_SIZE, "%s", qkv_sweep_reader_op(file, (size_t)row->op));
        } else {
            qkv_format(out, KEY_SIZE, "%s:%g", qkv_sweep_reader_op(file, (size_t)row->op),
                       row->epsilon);
        }
        break;
    default:
        snprintf(out, KEY_SIZE, "mean");
    }
}

static int find_key(keys *k, const char *text, size_t *index) {
    for (*index = 0; *index < k->n; ++*index) {
        if (strcmp(k->texts[*index], text) == 0) return 1;
    }
    if (!qkv_grow((void **)&k->texts, &k->capacity, k->n, sizeof *k->texts)) return 0;
    snprintf(k->texts[k->n++], KEY_SIZE, "%s", text);
    return 1;
}

/* Once to learn the keys, once to add. */
static int add_rows(means *m, const qkv_sweep_reader *file, const qkv_sweep_rows *rows,
                    dimension by_row, dimension by_column) {
    qkv_sweep_row value = QKV_SWEEP_ROW_INIT;
    for (size_t i = 0; qkv_sweep_rows_get(rows, i, &value); i++) {
        char row[KEY_SIZE], column[KEY_SIZE];
        size_t r, c;
        key_of(row, file, &value, by_row);
        key_of(column, file, &value, by_column);
        if (!find_key(&m->rows, row, &r) || !find_key(&m->columns, column, &c)) return 0;
        if (!m->sums || isnan(value.value)) continue;
        m->sums[r * m->columns.n + c] += value.value;
        m->counts[r * m->columns.n + c]++;
    }
    return 1;
}

static void print_means(const means *m) {
    int width = 8;
    for (size_t r = 0; r < m->rows.n; r++) {
        if ((int)strlen(m->rows.texts[r]) > width) width = (int)strlen(m->rows.texts[r]);
    }
    printf("  %-*s", width, "");
    for (size_t c = 0; c < m->columns.n; c++) printf("  %10s", m->columns.texts[c]);
    putchar('\n');
    for (size_t r = 0; r < m->rows.n; r++) {
        printf("  %-*s", width, m->rows.texts[r]);
        for (size_t c = 0; c < m->columns.n; c++) {
            const size_t at = r * m->columns.n + c;
            if (m->counts[at]) {
                qkv_print(stdout, "  %10.4g", m->sums[at] / (double)m->counts[at]);
            } else {
                printf("  %10s", "-");
            }
        }
        putchar('\n');
    }
}

static int print_table(const json_t *table, qkv_sweep_reader *file, qkv_error *err) {
    const dimension by_row = find_dimension(json_string_value(json_object_get(table, "rows")));
    const dimension by_column =
        find_dimension(json_string_value(json_object_get(table, "columns")));
    qkv_sweep_rows *rows = NULL;
    means m = {0};
    int status = qkv_sweep_reader_rows(file, json_string_value(json_object_get(table, "metric")),
                                       &rows, err);
    if (status == QKV_OK && !add_rows(&m, file, rows, by_row, by_column)) {
        status = qkv_fail_memory(err);
    }
    if (status == QKV_OK) {
        m.sums = qkv_calloc(m.rows.n * m.columns.n, sizeof *m.sums);
        m.counts = qkv_calloc(m.rows.n * m.columns.n, sizeof *m.counts);
        if (!m.sums || !m.counts || !add_rows(&m, file, rows, by_row, by_column)) {
            status = qkv_fail_memory(err);
        }
    }
    if (status == QKV_OK) {
        putchar('\n');
        cli_print_line(json_string_value(json_object_get(table, "title")));
        print_means(&m);
    }
    qkv_sweep_rows_free(rows);
    free(m.rows.texts);
    free(m.columns.texts);
    free(m.sums);
    free(m.counts);
    return status;
}

static int check_measured(const json_t *table, const qkv_sweep_reader *file, qkv_error *err) {
    const char *metric = json_string_value(json_object_get(table, "metric")), *name;
    for (size_t i = 0; (name = qkv_sweep_reader_metric(file, i)); i++) {
        if (strcmp(name, metric) == 0) return QKV_OK;
    }
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "table '%s' of the recipe shows %s, which is not among the sweep's metrics",
                    json_string_value(json_object_get(table, "title")), metric);
}

int recipe_tables_print(const json_t *tables, const char *results, qkv_error *err) {
    qkv_sweep_reader *file = NULL;
    int status = qkv_sweep_reader_open(&file, results, err);
    for (size_t i = 0; i < json_array_size(tables) && status == QKV_OK; i++) {
        status = check_measured(json_array_get(tables, i), file, err);
    }
    for (size_t i = 0; i < json_array_size(tables) && status == QKV_OK; i++) {
        status = print_table(json_array_get(tables, i), file, err);
    }
    qkv_sweep_reader_close(file);
    return status;
}
