/* Runs a sweep in one process: block after block, what is missing of it. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/memory.h"
#include "sweep/sweep.h"

typedef struct runner {
    const qkv_sweep *sweep;
    qkv_session *session;
    qkv_results *results;
    int64_t *cells; /* room for a block */
    double *values;
} runner;

static int run_block(const runner *r, int64_t block, size_t *n, qkv_error *err) {
    int status = qkv_results_missing(r->results, block, r->cells, n, err);
    if (status != QKV_OK || *n == 0) return status;
    status = qkv_sweep_compute(r->sweep, r->session, r->cells, *n, r->values, err);
    if (status != QKV_OK) return status;
    return qkv_results_put(r->results, r->cells, *n, r->values, err);
}

/* Whether a block is of this part of the sweep. */
static int is_mine(const qkv_sweep *sweep, const qkv_sweep_options *options, int64_t block) {
    if (!options || !options->n_shards) return 1;
    int64_t unit = block / qkv_sweep_unit(sweep, options->n_shards);
    return unit % options->n_shards == options->shard - 1;
}

static int64_t count_wanted(const qkv_sweep *sweep, const qkv_sweep_options *options) {
    int64_t wanted = 0, n;
    if (!options || !options->n_shards) return qkv_sweep_n_cells(sweep);
    for (int64_t b = 0; b < qkv_sweep_n_blocks(sweep); b++) {
        qkv_sweep_block(sweep, b, &n);
        if (is_mine(sweep, options, b)) wanted += n;
    }
    return wanted;
}

static int run_blocks(const runner *r, const qkv_sweep_options *options, int *stopped,
                      qkv_error *err) {
    int64_t done = 0, wanted = count_wanted(r->sweep, options);
    int status = qkv_results_n_done(r->results, &done, err);
    for (int64_t b = 0; b < qkv_sweep_n_blocks(r->sweep) && status == QKV_OK && !*stopped; b++) {
        size_t n = 0;
        if (!is_mine(r->sweep, options, b)) continue;
        status = run_block(r, b, &n, err);
        done += (int64_t)n;
        if (status == QKV_OK && n && options && options->progress)
            *stopped = options->progress(options->user, done, wanted) != 0 && done < wanted;
    }
    return status;
}

int qkv_sweep_run(const qkv_sweep *sweep, qkv_session *session, qkv_results *results,
                  const qkv_sweep_options *options, int *stopped, qkv_error *err) {
    int ended = 0;
    if (stopped) *stopped = 0;
    if (options && (options->n_shards < 0 || options->shard > options->n_shards ||
                    (options->n_shards && options->shard < 1)))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "part %lld of %lld; parts count from 1",
                        (long long)options->shard, (long long)options->n_shards);
    size_t room = (size_t)sweep->block_cells;
    runner r = {.sweep = sweep,
                .session = session,
                .results = results,
                .cells = qkv_calloc(room, sizeof *r.cells),
                .values = qkv_calloc(room * sweep->n_metrics, sizeof *r.values)};
    int status = r.cells && r.values ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) status = run_blocks(&r, options, &ended, err);
    free(r.cells);
    free(r.values);
    if (stopped) *stopped = ended;
    return status;
}
