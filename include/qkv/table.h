/*
 * Tables of measured values as CSV or JSON, one value a row, in a file or in memory.
 *
 *     const int32_t tokens[] = {1, 20, 30, 40};
 *     char *bytes = NULL;
 *     size_t n_bytes = 0;
 *     qkv_model *model = NULL;
 *     qkv_session *session = NULL;
 *     qkv_measure *measure = NULL;
 *     qkv_plan *plan = NULL;
 *     qkv_table *table = NULL;
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
 *         qkv_measure_new(&measure, "sink,entropy", NULL, &err) == QKV_OK &&
 *         qkv_plan_new(&plan, model, tokens, 4, &err) == QKV_OK &&
 *         qkv_measure_run(measure, &table, session, plan, &err) == QKV_OK) {
 *         qkv_table_names names = QKV_TABLE_NAMES_INIT;
 *         names.measure = measure;
 *         names.model = model;
 *         if (qkv_table_render(table, "csv", &names, &bytes, &n_bytes, &err) == QKV_OK) {
 *             fwrite(bytes, 1, n_bytes, stdout);
 *         }
 *     }
 *     qkv_bytes_free(bytes);
 *     qkv_table_free(table);
 *     qkv_plan_free(plan);
 *     qkv_measure_free(measure);
 *     qkv_session_free(session);
 *     qkv_model_free(model);
 *
 * CSV has the columns prompt, variant, layer, head, metric, value; prompts, layers and heads count from
 * 0 and are empty where a value has none; a value is nan where it is undefined. JSON holds the same
 * rows, and the prompts, variants and formulas they refer to; what is not finite is null.
 *
 * Tables of many prompts are written as they come, with a writer. The file appears under its name when
 * it is complete:
 *
 *     qkv_table_writer_open(&writer, "heads.csv", &names, &err);
 *     for (...) qkv_table_writer_add(writer, prompt, table, &err);
 *     qkv_table_writer_finish(writer, &err);
 *     qkv_table_writer_free(writer);
 *
 * A writer belongs to one thread at a time.
 */
#ifndef QKV_TABLE_H
#define QKV_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/bytes.h"
#include "qkv/measure.h"
#include "qkv/prompt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What rows refer to. A writer copies what it needs. */
typedef struct qkv_table_names {
    size_t size;
    const qkv_measure *measure;
    const qkv_model *model;    /* JSON names it, and its hash; CSV does without */
    const qkv_prompt *prompts; /* with their tokens; JSON lists them */
    size_t n_prompts;
    const char *const *variants; /* the edits of variants 1, 2, ... as they were given */
    size_t n_variants;           /* without the baseline */
} qkv_table_names;

#define QKV_TABLE_NAMES_INIT                                                                       \
    { sizeof(qkv_table_names), NULL, NULL, NULL, 0, NULL, 0 }

/* A row that belongs to no prompt, but to all of them: qkv_measure_finish. */
#define QKV_ALL_PROMPTS (-1)

/* One table, of prompt 0. `format` is "csv" or "json", and so is the suffix of a path. */
QKV_API int qkv_table_write(const qkv_table *table, const char *path, const qkv_table_names *names,
                            qkv_error *err);
/* The same bytes in memory, freed with qkv_bytes_free. */
QKV_API int qkv_table_render(const qkv_table *table, const char *format,
                             const qkv_table_names *names, char **bytes, size_t *n_bytes,
                             qkv_error *err);

typedef struct qkv_table_writer qkv_table_writer;

QKV_API int qkv_table_writer_open(qkv_table_writer **out, const char *path,
                                  const qkv_table_names *names, qkv_error *err);
/* Into memory. */
QKV_API int qkv_table_writer_new(qkv_table_writer **out, const char *format,
                                 const qkv_table_names *names, qkv_error *err);
/* Rows of a prompt, by its number, or QKV_ALL_PROMPTS. */
QKV_API int qkv_table_writer_add(qkv_table_writer *writer, int32_t prompt, const qkv_table *table,
                                 qkv_error *err);
/* Completes the file. */
QKV_API int qkv_table_writer_finish(qkv_table_writer *writer, qkv_error *err);
/* Completes what is in memory and hands it over, to be freed with qkv_bytes_free. */
QKV_API int qkv_table_writer_take(qkv_table_writer *writer, char **bytes, size_t *n_bytes,
                                  qkv_error *err);
/* What was not completed is gone. */
QKV_API void qkv_table_writer_free(qkv_table_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
