/*
 * A sweep into its file by several processes: copies of this one, or those that a transport leads
 * to. See qkv_sweep_share.
 *
 * Processes are forked before the file is opened and before there is a session: neither the lock
 * nor SQLite's handle nor a backend is ever in two of them.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/sized.h"
#include "sweep/sweep.h"
#include "sweep/workers.h"

enum { MOST_PROCESSES = 1024 };

typedef struct share {
    const qkv_sweep *sweep;
    const char *path;
    qkv_sweep_share_options options;
    qkv_sweep_transport transport;
    int stopped;
} share;

/* ---- checks ---- */

static int check_transport(const qkv_sweep_transport *to, qkv_error *err) {
    if (!to->send || !to->receive || !to->is_waiting) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a transport needs send, receive and is_waiting");
    }
    if (to->n_processes < 1 || to->rank < 0 || to->rank >= to->n_processes) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "rank %d of %d processes; ranks count from 0",
                        (int)to->rank, (int)to->n_processes);
    }
    return QKV_OK;
}

static int check(const share *s, qkv_error *err) {
    const qkv_sweep_share_options *o = &s->options;
    if (!s->sweep) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no sweep to run");
    if (o->n_processes < 0 || o->n_processes > MOST_PROCESSES) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "n_processes must be 0 to %d, not %d",
                        MOST_PROCESSES, (int)o->n_processes);
    }
    if (o->transport && o->n_processes != 1) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "a transport leads to running processes: n_processes must be 1");
    }
    if (!s->path && !(o->transport && s->transport.rank)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "no path for the results of the sweep");
    }
    return qkv_sweep_check_shard(o->shard, o->n_shards, err);
}

static int read_options(share *s, const qkv_sweep_share_options *given, qkv_error *err) {
    s->options = (qkv_sweep_share_options)QKV_SWEEP_SHARE_OPTIONS_INIT;
    s->transport = (qkv_sweep_transport)QKV_SWEEP_TRANSPORT_INIT;
    int status =
        qkv_sized_read(&s->options, sizeof s->options, given, "qkv_sweep_share_options", err);
    if (status == QKV_OK && s->options.transport) {
        status = qkv_sized_read(&s->transport, sizeof s->transport, s->options.transport,
                                "qkv_sweep_transport", err);
        if (status == QKV_OK) status = check_transport(&s->transport, err);
    }
    return status == QKV_OK ? check(s, err) : status;
}

/* ---- the work ---- */

/* No more processes than there are stretches of work. */
static int32_t n_processes(const share *s) {
    int64_t n = s->options.n_processes;
    if (n == 0) n = sysconf(_SC_NPROCESSORS_ONLN);
    if (n > MOST_PROCESSES) n = MOST_PROCESSES;
    if (n < 1) n = 1;
    const int64_t units = qkv_sweep_n_blocks(s->sweep) / qkv_sweep_unit(s->sweep, n);
    if (n > units) n = units;
    return n < 1 ? 1 : (int32_t)n;
}

/* One thread each: see workers.h. */
static int make_session(const share *s, qkv_session **session, qkv_error *err) {
    const qkv_session_options options = {
        .size = sizeof options, .n_threads = 1, .memory_budget = s->options.memory_budget};
    const int status = qkv_session_new(session, s->sweep->model, &options, err);
    /* Followers hear of the end from the leader. */
    if (status != QKV_OK || s->transport.rank != 0 || !s->options.session_progress) return status;
    return qkv_session_set_progress(*session, s->options.session_progress, err);
}

static int lead(share *s, qkv_session *session, qkv_error *err) {
    const qkv_sweep_options options = {.size = sizeof options,
                                       .shard = s->options.shard,
                                       .n_shards = s->options.n_shards,
                                       .progress = s->options.progress,
                                       .user = s->options.user};
    qkv_sweep_writer *results = NULL;
    char part[64];
    snprintf(part, sizeof part, "%" PRId64 "/%" PRId64, options.shard, options.n_shards);
    int status =
        qkv_sweep_writer_open(&results, s->sweep, s->path, options.n_shards ? part : NULL, err);
    if (status == QKV_OK) {
        status =
            qkv_workers_lead(&s->transport, s->sweep, session, results, &options, &s->stopped, err);
    }
    const int closed = qkv_sweep_writer_close(results, status == QKV_OK ? err : NULL);
    return status == QKV_OK ? closed : status;
}

static int take_part(share *s, qkv_error *err) {
    qkv_session *session = NULL;
    int status = make_session(s, &session, err);
    if (status == QKV_OK && s->transport.rank == 0) {
        status = lead(s, session, err);
    } else if (status == QKV_OK) {
        status = qkv_workers_follow(&s->transport, s->sweep, session, err);
    }
    qkv_session_free(session);
    return status;
}

/* A copy of this process tells the leader alone what went wrong, and ends here. */
static void follow_and_end(share *s) {
    qkv_error problem = {0};
    const int status = take_part(s, &problem);
    if (status != QKV_OK) qkv_workers_give_up(&s->transport, status, &problem);
    qkv_workers_local_end(&s->transport);
}

static int run_locally(share *s, qkv_error *err) {
    int status = qkv_workers_local_start(&s->transport, n_processes(s) - 1, err);
    if (status == QKV_OK && s->transport.rank != 0) follow_and_end(s);
    if (status == QKV_OK) status = take_part(s, err);
    qkv_workers_local_end(&s->transport);
    return status;
}

int qkv_sweep_share(const qkv_sweep *sweep, const char *path,
                    const qkv_sweep_share_options *options, int *stopped, qkv_error *err) {
    share s = {.sweep = sweep, .path = path};
    if (stopped) *stopped = 0;
    int status = read_options(&s, options, err);
    if (status != QKV_OK) return status;
    status = s.options.transport ? take_part(&s, err) : run_locally(&s, err);
    if (stopped) *stopped = s.stopped;
    return status;
}
