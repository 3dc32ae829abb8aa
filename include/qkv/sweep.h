/*
 * Sweeps: every combination of prompts, layers, heads, targets and operations, measured, with the
 * results in one SQLite file that a run can resume after it was stopped.
 *
 *     qkv_model *model = NULL;
 *     qkv_sweep *sweep = NULL;
 *     const char *spec = "{\"prompts\": [\"The river runs past the old mill.\"],"
 *                        " \"layers\": \"0-1\", \"targets\": \"q,k\", \"ops\": \"scale\","
 *                        " \"epsilon\": \"logspace:1e-4,1,5\", \"metrics\": \"sink,tv\"}";
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_sweep_new(&sweep, model, spec, &err) == QKV_OK) {
 *         qkv_sweep_share(sweep, "results.sqlite", NULL, NULL, &err);
 *     }
 *     qkv_sweep_free(sweep);
 *     qkv_model_free(model);
 *
 * A specification is a JSON object; docs/sweeps.md describes its keys. Everything in it is checked
 * against the model before anything is computed.
 *
 * A cell is one edit of one prompt (or no edit: target "none"). Cells are numbered in canonical
 * order: by prompt, layer, head, target, operation, ε. The value of a cell does not depend on what
 * it is computed with. A specification with pairs of prompts
 * ("clean" and "corrupt") patches one into the other; its cells go by pair, direction, layer, map
 * and column, after the two unedited prompts of the pair. With "receivers" its cells are heads, of which
 * only what they change by way of these counts; their edit is that of the first of two runs.
 *
 * A sweep belongs to one thread at a time. It keeps its model alive.
 */
#ifndef QKV_SWEEP_H
#define QKV_SWEEP_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/bytes.h"
#include "qkv/progress.h"
#include "qkv/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what to do ---- */

typedef struct qkv_sweep qkv_sweep;

QKV_API int qkv_sweep_new(qkv_sweep **out, const qkv_model *model, const char *spec,
                          qkv_error *err);
QKV_API void qkv_sweep_free(qkv_sweep *sweep);

QKV_API size_t qkv_sweep_n_prompts(const qkv_sweep *sweep);
QKV_API size_t qkv_sweep_n_metrics(const qkv_sweep *sweep);
QKV_API int64_t qkv_sweep_n_cells(const qkv_sweep *sweep);

/* Measures the cells of a block, without a file: values[i * n_metrics + m], i counting from its first cell. */
QKV_API int qkv_sweep_compute(const qkv_sweep *sweep, qkv_session *session, int64_t block,
                              double *values, qkv_error *err);

/* What running all of it would take, estimated from the planner's passes. */
QKV_API int qkv_sweep_estimate(const qkv_sweep *sweep, qkv_session *session, qkv_run_stats *stats,
                               qkv_error *err);

/* ---- running by several processes ---- */

/* Messages between processes that the caller has started, e.g. with mpirun. They travel between
 * rank 0, which leads, and each of the others: these send to 0 only. */
typedef struct qkv_sweep_transport {
    size_t size;
    int32_t rank; /* of this process; 0 writes the file, hands out the work and computes too */
    int32_t n_processes; /* with rank 0 */
    /* 1, or 0 when the receiver is gone. */
    int (*send)(void *user, int32_t to, const void *data, size_t n_bytes);
    /* Waits for the next message. *n_bytes is the room, then the length; *from receives the sender.
     * 0: that one is gone, or, with *from 0 in the leader, nothing can be received any more. */
    int (*receive)(void *user, int32_t *from, void *data, size_t *n_bytes);
    /* 1 when there is a message to be received, for which it waits so long. Called by the leader. */
    int (*is_waiting)(void *user, int milliseconds);
    /* The leader expects nothing more of that process, whose end is then no loss. May be NULL. */
    void (*forget)(void *user, int32_t rank);
    /* The leader waits for no other process any more: the others may end in the middle of their work. May be
     * NULL. */
    void (*abandon)(void *user);
    void *user;
} qkv_sweep_transport;

#define QKV_SWEEP_TRANSPORT_INIT                                                                   \
    { .size = sizeof(qkv_sweep_transport), .n_processes = 1 }

typedef struct qkv_sweep_share_options {
    size_t size;
    int64_t shard, n_shards; /* this part of so many, from 1; 0: all of it */
    int32_t n_processes;     /* with this one; 1: nothing is forked; 0: one for every core */
    size_t memory_budget;    /* of every process, as in qkv_session_options; 0: the default */
    const qkv_sweep_transport *transport; /* in place of forked processes; n_processes is 1 then */
    /* Called at the start, with what the file holds already, and after every block, with the number of
     * cells done and wanted in this part; anything but 0 stops the run. In the process that leads only.
     * May be NULL. */
    int (*progress)(void *user, int64_t done, int64_t wanted);
    void *user;
    /* For the session of the process that leads: ends the sweep within a second, also in the middle
     * of a block, with QKV_ERR_CANCELLED. What is stored is kept. May be NULL. */
    const qkv_progress *session_progress;
} qkv_sweep_share_options;

#define QKV_SWEEP_SHARE_OPTIONS_INIT                                                               \
    { .size = sizeof(qkv_sweep_share_options), .n_processes = 1 }

/* Runs the sweep into a file of results. It makes the file, or resumes one that was made for the same
 * specification and model; one that is open elsewhere is refused: QKV_ERR_IO. The path is the name of a file
 * whatever it looks like (":memory:"), and must not be empty. Every process computes with one thread; the rows do not depend on how many there are. options
 * may be NULL. *stopped (may be NULL) is 1 when progress ended it: what is stored is kept, and the
 * same call continues from there.
 *
 * With n_processes other than 1 this process is forked, so many times less one, before anything is
 * computed; no more processes are started than there is work for. A copy has the calling thread
 * alone, and a lock that another thread holds at that moment stays locked in it for ever. So no
 * other thread may be inside this library, ggml or LAPACK while this is called; threads that wait
 * or do other work, and sessions of several threads that were used before, do no harm. Where that
 * cannot be promised, give 1, which never forks, or a transport. The copies ignore SIGINT and
 * SIGTERM, run no handlers of atexit, write nothing, and end when this process does; all are waited
 * for before the function returns. What goes wrong in one of them is the error here.
 *
 * With a transport, all processes call this with the same sweep. In those with another rank than 0
 * the path is not used, and what goes wrong is returned there. */
QKV_API int qkv_sweep_share(const qkv_sweep *sweep, const char *path,
                            const qkv_sweep_share_options *options, int *stopped, qkv_error *err);

/* ---- files of results ---- */

typedef struct qkv_sweep_summary {
    size_t size;
    int64_t n_cells;
    int64_t n_missing;
    int64_t n_rows;
} qkv_sweep_summary;

#define QKV_SWEEP_SUMMARY_INIT                                                                     \
    { .size = sizeof(qkv_sweep_summary) }

/* All rows in canonical order (cell, then metric by name) as .csv or .json. What no sweep makes is
 * refused, here and below. A summary may be NULL. */
QKV_API int qkv_sweep_export(const char *path, const char *out, qkv_sweep_summary *summary,
                             qkv_error *err);
/* The same bytes in memory, freed with qkv_bytes_free; `format` is "csv" or "json". */
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
