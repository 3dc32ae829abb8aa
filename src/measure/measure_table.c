#include "measure/measure_table.h"

#include <stdlib.h>

#include "base/memory.h"

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
static int add_place(qkv_table *table, const qkv_tally *tally, qkv_measurement row,
                     qkv_metric_scope scope, qkv_error *err) {
    const qkv_measure *m = tally->measure;
    size_t slot = qkv_tally_slot(tally, row.variant, row.layer, row.head);
    for (size_t i = 0; i < m->n_metrics; i++) {
        if (qkv_measure_info(m, i)->scope != scope) continue;
        row.metric = i;
        row.value = tally->values[slot * m->n_metrics + i];
        int status = qkv_table_add(table, &row, err);
        if (status != QKV_OK) return status;
    }
    return QKV_OK;
}

static int add_layer(qkv_table *table, const qkv_tally *tally, size_t variant, int32_t layer,
                     qkv_error *err) {
    qkv_measurement row = {.variant = variant, .layer = layer, .head = -1};
    int status = add_place(table, tally, row, QKV_SCOPE_LAYER, err);
    for (row.head = 0; row.head < tally->all_heads && status == QKV_OK; row.head++) {
        if (tally->head_set[row.head]) status = add_place(table, tally, row, QKV_SCOPE_HEAD, err);
    }
    return status;
}

int qkv_table_of_tally(qkv_table **out, const qkv_tally *tally, qkv_result **result,
                       qkv_error *err) {
    int status = qkv_table_new(out, err);
    for (size_t v = 0; v < tally->n_variants && status == QKV_OK; v++) {
        qkv_measurement row = {.variant = v, .layer = -1, .head = -1};
        status = add_place(*out, tally, row, QKV_SCOPE_VARIANT, err);
        for (int32_t il = 0; il < tally->all_layers && status == QKV_OK; il++) {
            if (tally->layer_set[il]) status = add_layer(*out, tally, v, il, err);
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
    return table->n_rows;
}

qkv_measurement qkv_table_get(const qkv_table *table, size_t index) {
    return table->rows[index];
}

qkv_run_stats qkv_table_stats(const qkv_table *table) {
    return table->result ? qkv_result_get_stats(table->result) : (qkv_run_stats){0};
}

const qkv_result *qkv_table_result(const qkv_table *table) {
    return table->result;
}
