/*
 * Reading the results file of a sweep (SQLite), finished or not, also while a sweep writes to it.
 *
 *     qkv_sweep_reader *file = NULL;
 *     qkv_sweep_rows *rows = NULL;
 *     qkv_sweep_row row = QKV_SWEEP_ROW_INIT;
 *     if (qkv_sweep_reader_open(&file, "results.sqlite", &err) == QKV_OK &&
 *         qkv_sweep_reader_rows(file, "sink", &rows, &err) == QKV_OK) {
 *         for (size_t i = 0; qkv_sweep_rows_get(rows, i, &row); i++) {
 *             printf("%s@%d.h%d %g: %g\n", qkv_sweep_reader_target(file, (size_t)row.target),
 *                    (int)row.layer, (int)row.head, row.epsilon, row.value);
 *         }
 *     }
 *     qkv_sweep_rows_free(rows);
 *     qkv_sweep_reader_close(file);
 *
 * A file is opened for reading only and nothing beside it is touched. All of it is checked: what is
 * not a sweep, or one of another format, or has tables or rows that no sweep makes, is an error.
 * Rows are those that are stored at the time of each call, so that one reader can follow a sweep
 * that runs; between calls the file is not held. A file belongs to one thread at a time.
 * The rows themselves are independent of it.
 */
#ifndef QKV_SWEEP_READER_H
#define QKV_SWEEP_READER_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_sweep_reader qkv_sweep_reader;

/* Belongs to the file. Fields are only ever added at the end. */
typedef struct qkv_sweep_reader_info {
    const char *path;
    const char *model_name; /* these four, and the last: "" where the file does not say */
    const char *model_path; /* its last part */
    const char *model_hash;
    const char *spec_hash;
    size_t n_prompts, n_metrics, n_targets, n_ops;
    const char *model_notices; /* as in qkv_model_info */
    int32_t patches; /* 1: cells patch one prompt into another; prompts 2i and 2i + 1 are a pair */
    const char *model_weights; /* type of most of its weights; "" where the file does not say */
} qkv_sweep_reader_info;

/* The cells of a sweep with the values of one metric. */
typedef struct qkv_sweep_rows qkv_sweep_rows;

/* One of them. */
typedef struct qkv_sweep_row {
    size_t size;
    int64_t prompt;
    int32_t layer, head; /* -1: of none, or of all together */
    int32_t target, op;  /* numbers for the functions below */
    double epsilon;      /* NaN where the operation has none */
    double value;        /* NaN: undefined there, or missing */
    int32_t missing;     /* 1: not computed yet */
    int64_t position;    /* of the clean prompt, where one is patched alone; -1: of none */
} qkv_sweep_row;

#define QKV_SWEEP_ROW_INIT                                                                         \
    { .size = sizeof(qkv_sweep_row) }

QKV_API int qkv_sweep_reader_open(qkv_sweep_reader **out, const char *path, qkv_error *err);
QKV_API void qkv_sweep_reader_close(qkv_sweep_reader *file);
QKV_API const qkv_sweep_reader_info *qkv_sweep_reader_get_info(const qkv_sweep_reader *file);

/* Names in the order in which the sweep uses them (metrics by name); NULL past the end. The target
 * of unedited cells is "none". */
QKV_API const char *qkv_sweep_reader_metric(const qkv_sweep_reader *file, size_t index);
QKV_API const char *qkv_sweep_reader_target(const qkv_sweep_reader *file, size_t index);
QKV_API const char *qkv_sweep_reader_op(const qkv_sweep_reader *file, size_t index);

/* Every cell of the sweep, in its order, with what is known of the metric by now. A reader that was
 * opened before there were results learns the names of the metrics here. */
QKV_API int qkv_sweep_reader_rows(qkv_sweep_reader *file, const char *metric, qkv_sweep_rows **out,
                                  qkv_error *err);
QKV_API size_t qkv_sweep_rows_count(const qkv_sweep_rows *rows);
/* Fills *row and returns 1, or returns 0 past the end. */
QKV_API int qkv_sweep_rows_get(const qkv_sweep_rows *rows, size_t index, qkv_sweep_row *row);
QKV_API void qkv_sweep_rows_free(qkv_sweep_rows *rows);

#ifdef __cplusplus
}
#endif

#endif
