/* One sweep from its specification to its file: checked, estimated, run by one process or many. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/number.h"
#include "cli/sweep.h"
#include "sweep/workers.h"

typedef struct work {
    const sweep_job *job;
    qkv_model *model;
    qkv_session *session;
    qkv_sweep *sweep;
    qkv_sweep_writer *results;
    qkv_workers workers;
    int under_mpi;
    sweep_progress progress;
} work;

/* "model" may stand in the file too, and is not part of what is hashed. */
static int open_model(work *w, json_t *spec, qkv_error *err) {
    json_t *named = json_object_get(spec, "model");
    if (named && !json_is_string(named)) {
        return qkv_fail(err, QKV_ERR_SYNTAX, "model must be the path of a file");
    }
    const char *path = w->job->model ? w->job->model : json_string_value(named);
    const int status = cli_model_open(&w->model, path, err);
    json_object_del(spec, "model");
    return status;
}

static int make_sweep(work *w, json_t *spec, qkv_error *err) {
    int status = open_model(w, spec, err);
    if (status != QKV_OK) return status;
    char *text = json_dumps(spec, JSON_REAL_PRECISION(17));
    status = text ? qkv_sweep_new(&w->sweep, w->model, text, err) : qkv_fail_memory(err);
    free(text);
    return status;
}

/* One thread each: see workers.h. */
static int make_session(work *w, qkv_error *err) {
    const qkv_session_options options = cli_session_options(1, w->job->memory);
    /* mpirun ends its processes with signals, and they must go then. */
    if (w->under_mpi) return qkv_session_new(&w->session, w->model, &options, err);
    return cli_session_new(&w->session, w->model, &options, err);
}

/* No more processes than there are stretches of work. */
static int n_processes(const work *w) {
    int64_t n = w->job->threads ? w->job->threads : sysconf(_SC_NPROCESSORS_ONLN);
    if (w->job->explain) n = 1;
    const int64_t units = qkv_sweep_n_blocks(w->sweep) / qkv_sweep_unit(w->sweep, n);
    if (n > units) n = units;
    return n < 1 ? 1 : (int)n;
}

static int print_estimate(const work *w, qkv_error *err) {
    qkv_run_stats stats;
    const int status = qkv_sweep_estimate(w->sweep, w->session, &stats, err);
    if (status != QKV_OK || w->job->quiet) return status;
    qkv_print(stderr,
              "qkv sweep: %" PRId64 " cells of %zu prompts, %zu metrics; about %" PRIu64
              " passes, %.3g GFLOP\n",
              qkv_sweep_n_cells(w->sweep), qkv_sweep_n_prompts(w->sweep),
              qkv_sweep_n_metrics(w->sweep), stats.n_passes, stats.flop / 1e9);
    return QKV_OK;
}

static int open_results(work *w, qkv_error *err) {
    char shard[64];
    snprintf(shard, sizeof shard, "%" PRId64 "/%" PRId64, w->job->shard, w->job->n_shards);
    int64_t done = 0;
    int status = qkv_sweep_writer_open(&w->results, w->sweep, w->job->output,
                                       w->job->n_shards ? shard : NULL, err);
    if (status == QKV_OK) status = qkv_sweep_writer_n_done(w->results, &done, err);
    if (status == QKV_OK && done && !w->job->quiet) {
        fprintf(stderr, "qkv sweep: %s has %" PRId64 " cells already\n", w->job->output, done);
    }
    w->progress.quiet = w->job->quiet;
    sweep_progress_start(&w->progress, done, qkv_sweep_n_cells(w->sweep));
    return status;
}

static int compute(work *w, qkv_error *err) {
    int stopped = 0;
    const qkv_sweep_options options = {.shard = w->job->shard,
                                       .n_shards = w->job->n_shards,
                                       .progress = sweep_progress_step,
                                       .user = &w->progress};
    int status =
        qkv_workers_lead(&w->workers, w->sweep, w->session, w->results, &options, &stopped, err);
    sweep_progress_end(&w->progress);
    if ((status == QKV_OK && stopped) || status == QKV_ERR_CANCELLED) {
        status = qkv_fail(err, QKV_ERR_CANCELLED,
                          "stopped with %" PRId64 " of %" PRId64
                          " cells in %s; the same command goes on from there",
                          w->progress.done, w->progress.wanted, w->job->output);
    }
    return status;
}

static void print_end(const work *w) {
    char time[32];
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    sweep_duration(time, (double)t.tv_sec + (double)t.tv_nsec * 1e-9 - w->progress.started);
    if (w->job->quiet) return;
    fprintf(stderr, "qkv sweep: %s is complete: %" PRId64 " cells%s, %" PRId64 " of them in %s\n",
            w->job->output, w->progress.wanted, w->job->n_shards ? " of this shard" : "",
            w->progress.done - w->progress.first_done, time);
}

/* Rank 0, or the only one: it alone writes, and says something. */
static int lead(work *w, qkv_error *err) {
    int status = print_estimate(w, err);
    if (status != QKV_OK || w->job->explain) return status;
    status = open_results(w, err);
    if (status == QKV_OK) status = compute(w, err);
    const int closed = qkv_sweep_writer_close(w->results, status == QKV_OK ? err : NULL);
    if (status == QKV_OK) status = closed;
    if (status == QKV_OK) print_end(w);
    return status;
}

static int start_crew(work *w, qkv_error *err) {
    if (w->under_mpi) return QKV_OK;
    return qkv_workers_local_start(&w->workers, n_processes(w) - 1, err);
}

/* What goes wrong in a process of mpirun it says itself; a copy of this one has nobody to say it to
 * but the leader. */
static void end_crew(work *w, int status, const qkv_error *problem) {
    if (w->under_mpi) {
        qkv_workers_mpi_end(&w->workers, status);
        return;
    }
    if (w->workers.rank != 0 && status != QKV_OK) qkv_workers_give_up(&w->workers, status, problem);
    qkv_workers_local_end(&w->workers);
}

int sweep_output_check(const char *path, qkv_error *err) {
    const char *suffix = qkv_path_suffix(path);
    if (strcmp(suffix, "csv") != 0 && strcmp(suffix, "json") != 0) return QKV_OK;
    return cli_usage(err, "results are a SQLite database, not %s; 'qkv sweep export' writes that",
                     suffix);
}

/* MPI starts before anything else, copies of this process when all is checked. */
static int begin(work *w, qkv_error *err) {
    const int status = w->job->output ? sweep_output_check(w->job->output, err) : QKV_OK;
    if (status != QKV_OK) return status;
    w->under_mpi = qkv_workers_mpi_is_wanted();
    if (!w->under_mpi) return QKV_OK;
    if (w->job->n_shards || w->job->threads) {
        return cli_usage(err, "under mpirun the processes are its own: leave out --shard and -t");
    }
    return qkv_workers_mpi_start(&w->workers, err);
}

int sweep_work(json_t *spec, const sweep_job *job, int *leads, qkv_error *err) {
    work w = {.job = job};
    int status = begin(&w, err);
    if (status == QKV_OK) status = make_sweep(&w, spec, err);
    if (status == QKV_OK) status = start_crew(&w, err);
    if (status == QKV_OK) status = make_session(&w, err);
    if (status == QKV_OK && w.workers.rank == 0) {
        status = lead(&w, err);
    } else if (status == QKV_OK && !job->explain) {
        status = qkv_workers_follow(&w.workers, w.sweep, w.session, err);
    }
    if (leads) *leads = w.workers.rank == 0;
    end_crew(&w, status, err);
    json_decref(spec);
    qkv_sweep_free(w.sweep);
    qkv_session_free(w.session);
    qkv_model_free(w.model);
    return status;
}
