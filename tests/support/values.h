/* What accessors fill in, as values: a test reads better without the places. What is not there
 * fails the test. */
#ifndef QKV_TESTS_SUPPORT_VALUES_H
#define QKV_TESTS_SUPPORT_VALUES_H

#include <stdlib.h>

#include "qkv/measure.h"
#include "qkv/sweep.h"
#include "qkv/sweep_reader.h"
#include "sweep/sweep.h"

static inline void value_found(int found) {
    if (!found) abort();
}

static inline qkv_measurement table_row(const qkv_table *table, size_t index) {
    qkv_measurement row = QKV_MEASUREMENT_INIT;
    value_found(qkv_table_get(table, index, &row));
    return row;
}

static inline qkv_run_stats table_stats(const qkv_table *table) {
    qkv_run_stats stats = QKV_RUN_STATS_INIT;
    value_found(qkv_table_stats(table, &stats));
    return stats;
}

static inline qkv_run_stats result_stats(const qkv_result *result) {
    qkv_run_stats stats = QKV_RUN_STATS_INIT;
    value_found(qkv_result_get_stats(result, &stats));
    return stats;
}

static inline qkv_run_stats session_stats(const qkv_session *session) {
    qkv_run_stats stats = QKV_RUN_STATS_INIT;
    value_found(qkv_session_get_stats(session, &stats));
    return stats;
}

static inline qkv_cell sweep_cell(const qkv_sweep *sweep, int64_t id) {
    qkv_cell cell = QKV_CELL_INIT;
    value_found(qkv_sweep_get_cell(sweep, id, &cell));
    return cell;
}

static inline qkv_sweep_row sweep_row(const qkv_sweep_rows *rows, size_t index) {
    qkv_sweep_row row = QKV_SWEEP_ROW_INIT;
    value_found(qkv_sweep_rows_get(rows, index, &row));
    return row;
}

#endif
