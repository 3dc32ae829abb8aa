/*
 * Tables of measured values as CSV or JSON, one value a row, in a file or in memory.
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
#ifndef QKV_STUDY_TABLE_H
#define QKV_STUDY_TABLE_H

#include "qkv/bytes.h"
#include "qkv/measure.h"
#include "qkv/prompt.h"
#include <stddef.h>
#include <stdint.h>

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
int qkv_table_write(const qkv_table *table, const char *path, const qkv_table_names *names,
                    qkv_error *err);
/* The same bytes in memory, freed with qkv_bytes_free. */
int qkv_table_render(const qkv_table *table, const char *format, const qkv_table_names *names,
                     char **bytes, size_t *n_bytes, qkv_error *err);

typedef struct qkv_table_writer qkv_table_writer;

int qkv_table_writer_open(qkv_table_writer **out, const char *path, const qkv_table_names *names,
                          qkv_error *err);
/* Into memory. */
int qkv_table_writer_new(qkv_table_writer **out, const char *format, const qkv_table_names *names,
                         qkv_error *err);
/* Rows of a prompt, by its number, or QKV_ALL_PROMPTS. */
int qkv_table_writer_add(qkv_table_writer *writer, int32_t prompt, const qkv_table *table,
                         qkv_error *err);
/* Completes the file. */
int qkv_table_writer_finish(qkv_table_writer *writer, qkv_error *err);
/* Completes what is in memory and hands it over, to be freed with qkv_bytes_free. */
int qkv_table_writer_take(qkv_table_writer *writer, char **bytes, size_t *n_bytes, qkv_error *err);
/* What was not completed is gone. */
void qkv_table_writer_free(qkv_table_writer *writer);

#endif
