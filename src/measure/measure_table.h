/* Tables of measured values. */
#ifndef QKV_MEASURE_MEASURE_TABLE_H
#define QKV_MEASURE_MEASURE_TABLE_H

#include "measure/metric_sums.h"

int qkv_table_new(qkv_table **out, qkv_error *err);
int qkv_table_add(qkv_table *table, const qkv_measurement *row, qkv_error *err);

/* All values of a finished totals. Takes the result over, and leaves NULL. */
int qkv_table_of_sums(qkv_table **out, const qkv_metric_sums *totals, qkv_result **result,
                      qkv_error *err);

#endif
