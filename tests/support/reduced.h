/*
 * Reductions of attention maps, computed again from the whole map, cell by cell.
 */
#ifndef QKV_TESTS_REDUCED_H
#define QKV_TESTS_REDUCED_H

#include "qkv/session.h"

/* The value of cell (row, column) of a map of n x n weights reduced to side x side; of a profile
 * only `column` counts. */
double reduced_cell(const float *map, int n, qkv_reduction kind, int side, int row, int column);

/* Fails the running test unless the result has this reduction of these heads of `map`, right. */
void expect_reduced(const qkv_result *result, size_t variant, int32_t layer, const qkv_tensor *map,
                    qkv_reduction kind, int side);

#endif
