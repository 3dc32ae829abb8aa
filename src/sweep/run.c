/* Runs a sweep in one process: block after block, what is missing of it. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "sweep/sweep.h"
#include "sweep/sweep_format.h"

int qkv_sweep_in_shard(const qkv_sweep *sweep, int64_t block, int64_t shard, int64_t n_shards) {
    if (!sweep || block < 0 || block >= qkv_sweep_n_blocks(sweep) || n_shards < 0) return 0;
    if (n_shards == 0) return 1;
    return block / qkv_sweep_unit(sweep, n_shards) % n_shards == shard - 1;
}

int qkv_sweep_check_shard(int64_t shard, int64_t n_shards, qkv_error *err) {
    if (n_shards >= 0 && shard <= n_shards && (!n_shards || shard >= 1)) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "part %lld of %lld; parts count from 1",
                    (long long)shard, (long long)n_shards);
}

int64_t qkv_sweep_shard_cells(const qkv_sweep *sweep, int64_t shard, int64_t n_shards) {
    int64_t wanted = 0, n;
    for (int64_t b = 0; b < qkv_sweep_n_blocks(sweep); b++) {
        qkv_sweep_block(sweep, b, &n);
        if (qkv_sweep_in_shard(sweep, b, shard, n_shards)) wanted += n;
    }
    return wanted;
}

static int run_block(const qkv_sweep *sweep, qkv_session *session, qkv_sweep_writer *results,
                     int64_t block, double *values, qkv_error *err) {
    int status = qkv_sweep_compute(sweep, session, block, values, err);
    return status == QKV_OK ? qkv_sweep_writer_put(results, block, values, err) : status;
}

static int run_blocks(const qkv_sweep *sweep, qkv_session *session, qkv_sweep_writer *results,
                      const qkv_sweep_options *options, double *values, int *stopped,
                      qkv_error *err) {
    int64_t done = 0, wanted = qkv_sweep_shard_cells(sweep, options->shard, options->n_shards);
    int status = qkv_sweep_writer_n_done(results, &done, err);
    for (int64_t b = 0; b < qkv_sweep_n_blocks(sweep) && status == QKV_OK && !*stopped; b++) {
        int64_t missing = 0;
        if (!qkv_sweep_in_shard(sweep, b, options->shard, options->n_shards)) continue;
        status = qkv_sweep_writer_n_missing(results, b, &missing, err);
        if (status != QKV_OK || !missing) continue;
        status = qkv_session_reach(session, (double)done, (double)missing, err);
        if (status == QKV_OK) status = run_block(sweep, session, results, b, values, err);
        done += missing;
        if (status == QKV_OK && options->progress && options->progress(options->user, done, wanted))
            *stopped = done < wanted;
    }
    return status;
}

int qkv_sweep_run(const qkv_sweep *sweep, qkv_session *session, qkv_sweep_writer *results,
                  const qkv_sweep_options *given, int *stopped, qkv_error *err) {
    qkv_sweep_options how = QKV_SWEEP_OPTIONS_INIT;
    const qkv_sweep_options *options = &how;
    int ended = 0;
    if (stopped) *stopped = 0;
    QKV_NEED(err, sweep);
    QKV_NEED(err, session);
    QKV_NEED(err, results);
    int status = qkv_sized_read(&how, sizeof how, given, "qkv_sweep_options", err);
    if (status != QKV_OK) return status;
    if (!qkv_sweep_writer_is_of(results, sweep))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the results are those of another sweep");
    status = qkv_sweep_check_shard(options->shard, options->n_shards, err);
    if (status != QKV_OK) return status;
    double *values = qkv_calloc((size_t)sweep->block_cells * sweep->n_metrics, sizeof *values);
    if (!values) return qkv_fail_memory(err);
    const int64_t wanted = qkv_sweep_shard_cells(sweep, options->shard, options->n_shards);
    status = qkv_session_begin_work(session, "cells", (double)wanted, err);
    if (status == QKV_OK)
        status = run_blocks(sweep, session, results, options, values, &ended, err);
    (void)qkv_session_end_work(session, ended ? QKV_ERR_CANCELLED : status);
    free(values);
    if (stopped) *stopped = ended;
    return status;
}
