/* One sweep from its specification to its file: checked, estimated, run, and told about. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/messages.h"
#include "cli/progress.h"
#include "cli/sweep.h"

int sweep_output_check(const char *path, qkv_error *err) {
    if (cli_is_stdout(path))
        return cli_usage(err, "results are a SQLite database, which cannot go to standard output: "
                              "give a file");
    static const struct {
        const char *suffix, *advice;
    } others[] = {
        {"csv", "'qkv sweep export' writes that"}, {"json", "'qkv sweep export' writes that"},
        {"png", "'qkv plot' draws them"},          {"svg", "'qkv plot' draws them"},
        {"pdf", "'qkv plot' draws them"},          {"html", "'qkv plot' draws them"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(qkv_path_suffix(path), others[i].suffix) == 0)
            return cli_usage(err, "results are a SQLite database, not %s; %s", others[i].suffix,
                             others[i].advice);
    }
    return QKV_OK;
}

/* ---- before the work ---- */

/* MPI starts before anything else. */
static int start_mpi(sweep_work *w, qkv_error *err) {
    w->transport = (qkv_sweep_transport)QKV_SWEEP_TRANSPORT_INIT;
    w->under_mpi = cli_mpi_is_wanted();
    if (!w->under_mpi) return QKV_OK;
    if (w->job->n_shards || w->job->threads) {
        return cli_usage(err, "mpirun starts the processes: leave out --shard and -t");
    }
    return cli_mpi_start(&w->transport, err);
}

/* "model" may stand in the file too, and is not part of what is hashed. */
static int open_model(sweep_work *w, json_t *spec, qkv_error *err) {
    json_t *named = json_object_get(spec, "model");
    if (named && !json_is_string(named)) {
        return qkv_fail(err, QKV_ERR_SYNTAX,
                        "model must be a text: the path or the name of a model");
    }
    const char *path = w->job->model ? w->job->model : json_string_value(named);
    int status = cli_model_open(&w->model, path, err);
    if (status == QKV_OK && w->job->flags)
        status = sweep_spec_chat(spec, w->job->flags, w->model, err);
    json_object_del(spec, "model");
    return status;
}

int sweep_work_start(sweep_work *w, const sweep_job *job, qkv_error *err) {
    *w = (sweep_work){.job = job};
    const int status = job->output ? sweep_output_check(job->output, err) : QKV_OK;
    return status == QKV_OK ? start_mpi(w, err) : status;
}

int sweep_work_begin(sweep_work *w, const sweep_job *job, json_t *spec, qkv_error *err) {
    int status = sweep_work_start(w, job, err);
    if (status == QKV_OK) status = open_model(w, spec, err);
    if (status != QKV_OK) return status;
    char *text = qkv_json_dump(spec, JSON_REAL_PRECISION(17));
    status = text ? qkv_sweep_new(&w->sweep, w->model, text, err) : qkv_fail_memory(err);
    free(text);
    return status;
}

void sweep_work_release(sweep_work *w) {
    qkv_sweep_free(w->sweep);
    qkv_model_free(w->model);
    *w = (sweep_work){0};
}

/* ---- what is said ---- */

static const char *name_of(const sweep_work *w) {
    return w->job->name ? w->job->name : "sweep";
}

static int print_estimate(sweep_work *w, qkv_error *err) {
    const qkv_session_options options = cli_session_options(1, w->job->memory);
    qkv_session *session = NULL;
    qkv_run_stats *stats = &w->estimate;
    *stats = (qkv_run_stats)QKV_RUN_STATS_INIT;
    int status = cli_session_new(&session, w->model, &options, err);
    if (status == QKV_OK) status = qkv_sweep_estimate(w->sweep, session, stats, err);
    cli_session_free(session);
    if (status != QKV_OK || w->job->quiet) return status;
    const int64_t n_cells = qkv_sweep_n_cells(w->sweep);
    const size_t n_prompts = qkv_sweep_n_prompts(w->sweep);
    const size_t n_metrics = qkv_sweep_n_metrics(w->sweep);
    cli_notice("qkv %s: %" PRId64 " cell%s of %zu prompt%s, %zu metric%s; about %" PRIu64
               " pass%s, %.3g GFLOP",
               name_of(w), n_cells, qkv_plural((uint64_t)n_cells), n_prompts, qkv_plural(n_prompts),
               n_metrics, qkv_plural(n_metrics), stats->n_passes, stats->n_passes == 1 ? "" : "es",
               stats->flop / 1e9);
    return QKV_OK;
}

/* The first call comes before the first cell, with what the file holds. */
static int step(void *user, int64_t done, int64_t wanted) {
    sweep_work *w = user;
    if (!w->has_begun) {
        w->has_begun = 1;
        if (done && !w->job->quiet) {
            cli_notice("qkv %s: %s has %" PRId64 " cell%s already", name_of(w), w->job->output,
                       done, qkv_plural((uint64_t)done));
        }
        w->first_done = done;
        w->started = cli_seconds();
        if (!w->job->quiet) cli_progress_end_is_told();
    }
    w->done = done;
    w->wanted = wanted;
    if (w->under_mpi) cli_progress_show("cells", (double)done, (double)wanted);
    return cli_stop_asked() != 0;
}

static void print_end(const sweep_work *w) {
    char time[CLI_DURATION_SIZE];
    cli_duration(time, cli_seconds() - w->started);
    if (w->job->quiet) return;
    cli_notice("qkv %s: %s is complete: %" PRId64 " cell%s%s, %" PRId64 " of them in %s",
               name_of(w), w->job->output, w->wanted, qkv_plural((uint64_t)w->wanted),
               w->job->n_shards ? " of this shard" : "", w->done - w->first_done, time);
}

int sweep_work_print_json(const sweep_work *w, qkv_error *err) {
    json_t *json =
        json_pack("{s:I, s:I, s:I, s:I, s:f}", "cells", (json_int_t)qkv_sweep_n_cells(w->sweep),
                  "prompts", (json_int_t)qkv_sweep_n_prompts(w->sweep), "metrics",
                  (json_int_t)qkv_sweep_n_metrics(w->sweep), "passes",
                  (json_int_t)w->estimate.n_passes, "flop", w->estimate.flop);
    if (!w->job->explain) {
        qkv_json_put(json, "stored", json_integer(w->wanted));
        qkv_json_put(json, "computed", json_integer(w->done - w->first_done));
        qkv_json_put(json, "seconds", json_real(cli_seconds() - w->started));
    }
    return cli_print_json(json, err);
}

/* ---- the work ---- */

static int share(sweep_work *w, qkv_error *err) {
    int stopped = 0;
    qkv_sweep_share_options options = QKV_SWEEP_SHARE_OPTIONS_INIT;
    options.shard = w->job->shard;
    options.n_shards = w->job->n_shards;
    options.n_processes = w->under_mpi ? 1 : (int32_t)w->job->threads;
    options.transport = w->under_mpi ? &w->transport : NULL;
    options.memory_budget = (size_t)w->job->memory << 20;
    options.progress = step;
    options.user = w;
    /* mpirun ends its processes with signals, and they must go then. */
    options.session_progress = w->under_mpi ? NULL : cli_progress();
    const int status = qkv_sweep_share(w->sweep, w->job->output, &options, &stopped, err);
    if (!(status == QKV_OK && stopped) && status != QKV_ERR_CANCELLED) return status;
    if (w->job->quiet) /* the file is not kept */
        return qkv_fail(err, QKV_ERR_CANCELLED, "stopped with %" PRId64 " of %" PRId64 " cells",
                        w->done, w->wanted);
    return qkv_fail(err, QKV_ERR_CANCELLED,
                    "stopped with %" PRId64 " of %" PRId64
                    " cells in %s; the same command resumes from there",
                    w->done, w->wanted, w->job->output);
}

int sweep_work_leads(const sweep_work *w) {
    return w->transport.rank == 0;
}

int sweep_work_run(sweep_work *w, qkv_error *err) {
    const int leads = sweep_work_leads(w);
    int status = leads ? print_estimate(w, err) : QKV_OK;
    if (status == QKV_OK && !w->job->explain) {
        status = share(w, err);
        if (status == QKV_OK && leads) print_end(w);
    }
    if (w->under_mpi) cli_mpi_end(status);
    return status;
}
