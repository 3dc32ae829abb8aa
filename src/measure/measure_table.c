#include "measure/metric_sums.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/sized.h"

struct qkv_table {
    qkv_measurement *rows;
    size_t n_rows, capacity;
    qkv_result *result;
};

int qkv_table_new(qkv_table **out, qkv_error *err) {
    *out = qkv_calloc(1, sizeof **out);
    return *out ? QKV_OK : qkv_fail_memory(err);
}

void qkv_table_free(qkv_table *table) {
    if (!table) return;
    qkv_result_free(table->result);
    free(table->rows);
    free(table);
}

int qkv_table_add(qkv_table *table, const qkv_measurement *row, qkv_error *err) {
    if (QKV_PUSH(table->rows, table->capacity, table->n_rows, *row)) return QKV_OK;
    return qkv_fail_memory(err);
}

/* The values of one place that belong there by their scope. */
static int add_place(qkv_table *table, const qkv_metric_sums *totals, qkv_measurement row,
                     qkv_metric_scope scope, qkv_error *err) {
    const qkv_measure *m = totals->measure;
    size_t slot = qkv_sum_slot(totals, row.variant, row.layer, row.head);
    for (size_t i = 0; i < m->n_metrics; i++) {
        if (qkv_measure_info(m, i)->scope != scope) continue;
        row.metric = i;
        row.value = totals->values[slot * m->n_metrics + i];
        int status = qkv_table_add(table, &row, err);
        if (status != QKV_OK) return status;
    }
    return QKV_OK;
}

static int add_layer(qkv_table *table, const qkv_metric_sums *totals, size_t variant, int32_t layer,
                     qkv_error *err) {
    qkv_measurement row = {.size = sizeof row, .variant = variant, .layer = layer, .head = -1};
    int status = add_place(table, totals, row, QKV_SCOPE_LAYER, err);
    for (row.head = 0; row.head < totals->all_heads && status == QKV_OK; row.head++) {
        if (totals->head_set[row.head]) status = add_place(table, totals, row, QKV_SCOPE_HEAD, err);
    }
    return status;
}

int qkv_table_of_sums(qkv_table **out, const qkv_metric_sums *totals, qkv_result **result,
                      qkv_error *err) {
    int status = qkv_table_new(out, err);
    for (size_t v = 0; v < totals->n_variants && status == QKV_OK; v++) {
        qkv_measurement row = {.size = sizeof row, .variant = v, .layer = -1, .head = -1};
        status = add_place(*out, totals, row, QKV_SCOPE_VARIANT, err);
        for (int32_t il = 0; il < totals->all_layers && status == QKV_OK; il++) {
            if (totals->layer_set[il]) status = add_layer(*out, totals, v, il, err);
        }
    }
    if (status == QKV_OK) {
        (*out)->result = *result;
        *result = NULL;
        return QKV_OK;
    }
    qkv_table_free(*out);
    *out = NULL;
    return status;
}

size_t qkv_table_size(const qkv_table *table) {
    return table ? table->n_rows : 0;
}

int qkv_table_get(const qkv_table *table, size_t index, qkv_measurement *row) {
    if (!table || !row || index >= table->n_rows) return 0;
    return qkv_sized_write(row, &table->rows[index], sizeof *row, "qkv_measurement", NULL) ==
           QKV_OK;
}

int qkv_table_stats(const qkv_table *table, qkv_run_stats *stats) {
    const qkv_run_stats none = QKV_RUN_STATS_INIT;
    if (!table || !stats) return 0;
    if (table->result) return qkv_result_get_stats(table->result, stats);
    return qkv_sized_write(stats, &none, sizeof none, "qkv_run_stats", NULL) == QKV_OK;
}

const qkv_result *qkv_table_result(const qkv_table *table) {
    return table ? table->result : NULL;
}
