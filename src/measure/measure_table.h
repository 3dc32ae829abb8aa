/* Tables of measured values. */
#ifndef QKV_MEASURE_MEASURE_TABLE_H
#define QKV_MEASURE_MEASURE_TABLE_H

#include "measure/tally.h"

int qkv_table_new(qkv_table **out, qkv_error *err);
int qkv_table_add(qkv_table *table, const qkv_measurement *row, qkv_error *err);

/* All values of a finished tally. Takes the result over, and leaves NULL. */
int qkv_table_of_tally(qkv_table **out, const qkv_tally *tally, qkv_result **result,
                       qkv_error *err);

#endif
