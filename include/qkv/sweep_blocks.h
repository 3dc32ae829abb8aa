/*
 * Unstable: may change in every version.
 *
 * Blocks of sweeps, for those who share out the work themselves; qkv_sweep_run does all of it.
 *
 *     qkv_model *model = NULL;
 *     qkv_session *session = NULL;
 *     qkv_sweep *sweep = NULL;
 *     const char *spec = "{\"prompts\": [\"The river runs past the old mill.\"],"
 *                        " \"layers\": \"0\", \"targets\": \"q\", \"ops\": \"zero\","
 *                        " \"metrics\": \"sink\"}";
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
 *         qkv_sweep_new(&sweep, model, spec, &err) == QKV_OK) {
 *         for (int64_t block = 0; block < qkv_sweep_n_blocks(sweep); block++) {
 *             int64_t n_cells = 0, first = qkv_sweep_block(sweep, block, &n_cells);
 *             double *values = calloc((size_t)n_cells, sizeof *values); // one metric
 *             if (values && qkv_sweep_compute(sweep, session, block, values, &err) == QKV_OK) {
 *                 printf("cell %d: %g\n", (int)first, values[0]);
 *             }
 *             free(values);
 *         }
 *     }
 *     qkv_sweep_free(sweep);
 *     qkv_session_free(session);
 *     qkv_model_free(model);
 *
 * A block is a run of cells of one prompt, and of one layer unless nothing is edited; its cells are
 * computed and stored together. Threads: as in qkv/sweep.h.
 */
#ifndef QKV_SWEEP_BLOCKS_H
#define QKV_SWEEP_BLOCKS_H

#include "qkv/sweep.h"

#ifdef __cplusplus
extern "C" {
#endif

QKV_API int64_t qkv_sweep_n_blocks(const qkv_sweep *sweep);
/* First cell of a block, and how many it has; -1 and 0 where there is no such block. */
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

/* How many cells of a block have no values yet. */
QKV_API int qkv_sweep_writer_n_missing(qkv_sweep_writer *results, int64_t block, int64_t *n,
                                       qkv_error *err);
/* Stores the values of a block in one transaction. */
QKV_API int qkv_sweep_writer_put(qkv_sweep_writer *results, int64_t block, const double *values,
                                 qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
