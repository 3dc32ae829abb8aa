/*
 * Sweeps: every combination of prompts, layers, heads, targets and operations, measured, with the
 * results in one SQLite file that a run can go on with after it was stopped.
 *
 *     qkv_sweep *sweep;  qkv_sweep_writer *results;
 *     qkv_sweep_new(&sweep, model,
 *                   "{\"prompts\": [\"The river runs past the old mill.\"], \"targets\": \"q,k\","
 *                   " \"ops\": \"scale\", \"epsilon\": \"logspace:1e-4,1,5\","
 *                   " \"metrics\": \"sink,tv\"}", &err);
 *     qkv_sweep_writer_open(&results, sweep, "results.sqlite", NULL, &err);
 *     qkv_sweep_run(sweep, session, results, NULL, &err);
 *     qkv_sweep_writer_close(results, &err);
 *     qkv_sweep_free(sweep);
 *
 * A specification is a JSON object; docs/sweeps.md describes its keys. Everything in it is checked
 * against the model before anything is computed.
 *
 * A cell is one edit of one prompt (or no edit: target "none"). Cells are numbered in canonical
 * order: by prompt, layer, head, target, operation, ε. A block is a run of cells of one prompt,
 * and of one layer unless nothing is edited; its cells are computed and stored together. The value
 * of a cell does not depend on what it is computed with (see qkv_sweep_run about threads).
 *
 * A sweep belongs to one thread at a time, and so do results.
 */
#ifndef QKV_SWEEP_H
#define QKV_SWEEP_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/bytes.h"
#include "qkv/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what to do ---- */

typedef struct qkv_sweep qkv_sweep;

/* The model must outlive the sweep. */
QKV_API int qkv_sweep_new(qkv_sweep **out, const qkv_model *model, const char *spec,
                          qkv_error *err);
QKV_API void qkv_sweep_free(qkv_sweep *sweep);

/* The whole specification, defaults filled in, as one line of JSON with sorted keys, and the
 * XXH3-128 of it as 32 hexadecimal digits. */
QKV_API const char *qkv_sweep_spec(const qkv_sweep *sweep);
QKV_API const char *qkv_sweep_hash(const qkv_sweep *sweep);

QKV_API size_t qkv_sweep_n_prompts(const qkv_sweep *sweep);
QKV_API size_t qkv_sweep_n_metrics(const qkv_sweep *sweep);
/* NULL past the end. */
QKV_API const char *qkv_sweep_metric(const qkv_sweep *sweep, size_t index);
QKV_API int64_t qkv_sweep_n_cells(const qkv_sweep *sweep);

enum { QKV_EDIT_SIZE = 128 };

typedef struct qkv_cell {
    int64_t id;
    size_t prompt;
    int32_t layer;            /* -1: all layers together, or a baseline that belongs to none */
    int32_t head;             /* query head; -1 likewise */
    const char *target;       /* "q", "k", ..., "none" */
    const char *op;           /* "scale", "mean:head", ...; "" for the baseline */
    double epsilon;           /* NaN where the operation has none */
    char edit[QKV_EDIT_SIZE]; /* as in qkv/plan.h; "" for the baseline */
} qkv_cell;

QKV_API qkv_cell qkv_sweep_get_cell(const qkv_sweep *sweep, int64_t id);

/* What running all of it would take, estimated from the planner's passes. */
QKV_API int qkv_sweep_estimate(const qkv_sweep *sweep, qkv_session *session, qkv_run_stats *stats,
                               qkv_error *err);

/* ---- computing ---- */

QKV_API int64_t qkv_sweep_n_blocks(const qkv_sweep *sweep);
/* First cell of a block, and how many it has. */
QKV_API int64_t qkv_sweep_block(const qkv_sweep *sweep, int64_t block, int64_t *n_cells);
/* How many consecutive blocks one of n workers should take at a time: those of a prompt share its
 * forward pass. */
QKV_API int64_t qkv_sweep_unit(const qkv_sweep *sweep, int64_t n_workers);

/* Whether a block belongs to the part `shard` (from 1) of n_shards; 0 shards: always. */
QKV_API int qkv_sweep_in_shard(const qkv_sweep *sweep, int64_t block, int64_t shard,
                               int64_t n_shards);

/* Cells of that part. */
QKV_API int64_t qkv_sweep_shard_cells(const qkv_sweep *sweep, int64_t shard, int64_t n_shards);

/* Measures the cells of a block: values[i * n_metrics + m], i counting from its first cell. */
QKV_API int qkv_sweep_compute(const qkv_sweep *sweep, qkv_session *session, int64_t block,
                              double *values, qkv_error *err);

/* ---- results ---- */

typedef struct qkv_sweep_writer qkv_sweep_writer;

/* Makes the file, or resumes one that was made for the same specification and model. shard is NULL,
 * or the part of the sweep that the file is for, e.g. "2/3". The path is the name of a file whatever
 * it looks like (":memory:"), and must not be empty. A file that other results of this or another
 * process are open on is refused: QKV_ERR_IO. */
QKV_API int qkv_sweep_writer_open(qkv_sweep_writer **out, const qkv_sweep *sweep, const char *path,
                                  const char *shard, qkv_error *err);
/* Leaves one file, without a log beside it. Accepts NULL; err tells what could not be written. */
QKV_API int qkv_sweep_writer_close(qkv_sweep_writer *results, qkv_error *err);

/* Cells whose values are there. */
QKV_API int qkv_sweep_writer_n_done(qkv_sweep_writer *results, int64_t *n, qkv_error *err);
/* How many cells of a block have no values yet. */
QKV_API int qkv_sweep_writer_n_missing(qkv_sweep_writer *results, int64_t block, int64_t *n,
                                       qkv_error *err);
/* Stores the values of a block in one transaction. */
QKV_API int qkv_sweep_writer_put(qkv_sweep_writer *results, int64_t block, const double *values,
                                 qkv_error *err);

/* ---- running ---- */

typedef struct qkv_sweep_options {
    int64_t shard, n_shards; /* this part of so many, from 1; 0: all of it */
    /* Called after every block with the number of cells done and wanted in this part; anything but
     * 0 stops the run, which can be gone on with. May be NULL. */
    int (*progress)(void *user, int64_t done, int64_t wanted);
    void *user;
} qkv_sweep_options;

/* Computes and stores what is missing. *stopped (may be NULL) is 1 when progress ended it. The
 * session's own callback (qkv/progress.h) ends it in the middle of a block: QKV_ERR_CANCELLED.
 *
 * Products of matrices come out a little different, in the last bits, when several threads share
 * one. Give a session of one thread and every run of the sweep, in whatever pieces, has the same
 * values bit for bit; to use more cores, run shards. */
QKV_API int qkv_sweep_run(const qkv_sweep *sweep, qkv_session *session, qkv_sweep_writer *results,
                          const qkv_sweep_options *options, int *stopped, qkv_error *err);

/* ---- files of results ---- */

typedef struct qkv_sweep_summary {
    int64_t n_cells;
    int64_t n_missing;
    int64_t n_rows;
} qkv_sweep_summary;

/* All rows in canonical order (cell, then metric by name) as .csv or .json. What no sweep makes is
 * refused, here and below. */
QKV_API int qkv_sweep_export(const char *path, const char *out, qkv_sweep_summary *summary,
                             qkv_error *err);
/* The same bytes in memory, freed with qkv_bytes_free; `format` is "csv" or "json". summary may be
 * NULL. */
QKV_API int qkv_sweep_render(const char *path, const char *format, char **bytes, size_t *n_bytes,
                             qkv_sweep_summary *summary, qkv_error *err);
/* Files of the same specification and model, e.g. shards, as one. Missing cells are an error
 * unless partial is not 0. Replaces a results file; any other file, one of the parts and one that
 * is open elsewhere are refused. */
QKV_API int qkv_sweep_merge(const char *out, const char *const *paths, size_t n, int partial,
                            qkv_sweep_summary *summary, qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
