/*
 * What `qkv measure` does with values: they go to files as they come, and into a summary.
 */
#ifndef QKV_CLI_MEASURE_H
#define QKV_CLI_MEASURE_H

#include "cli/inputs.h"
#include "qkv/table.h"

/* What a table's rows refer to. */
typedef struct measure_names {
    const qkv_measure *measure;
    const cli_list *variants; /* behind the baseline */
    const cli_prompt *prompts;
    size_t n_prompts;
    const qkv_model *model;
} measure_names;

/* "baseline", or the edits as they were given. */
const char *measure_variant_name(const measure_names *names, size_t variant);

/* ---- measure_files.c ---- */

typedef struct measure_files {
    qkv_table_writer **items;
    size_t n;
    size_t printed;        /* the one of standard output, made in memory; SIZE_MAX: none */
    const char **variants; /* what the tables refer to */
    qkv_prompt *prompts;
} measure_files;

/* Opens all files and writes what comes before the rows; `format` is what standard output gets. Release
 * whatever is returned. */
int measure_files_open(measure_files *files, const cli_list *outputs, const char *format,
                       const measure_names *names, qkv_error *err);
int measure_files_add(measure_files *files, int32_t prompt, const qkv_table *table, qkv_error *err);
int measure_files_finish(measure_files *files, qkv_error *err);
void measure_files_release(measure_files *files);

/* ---- measure_summary.c ---- */

typedef struct measure_summary {
    struct measure_line *lines; /* variants x metrics */
    size_t n_variants, n_metrics;
} measure_summary;

int measure_summary_new(measure_summary *summary, const measure_names *names, qkv_error *err);
void measure_summary_add(measure_summary *summary, int prompt, const qkv_table *table);
void measure_summary_print(const measure_summary *summary, const measure_names *names);
/* NULL without memory. */
json_t *measure_summary_json(const measure_summary *summary, const measure_names *names);
void measure_summary_release(measure_summary *summary);

#endif
