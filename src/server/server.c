/*
 * Servers: addresses, the token, threads. Requests come in through http.c, wait in queue.c and are
 * done by the threads of job_runner.c.
 */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE /* getentropy */
#include "qkv/server.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/sized.h"
#include "page/page_bundle.h"
#include "server/serve.h"

enum { DEFAULT_CONNECTIONS = 256, DEFAULT_SECONDS = 300, RANDOM_BYTES = 24 };

/* ---- the thread that looks at the clock ---- */

static struct timespec after(double seconds) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const double end = (double)t.tv_nsec * 1e-9 + seconds;
    t.tv_sec += (time_t)end;
    t.tv_nsec = (long)((end - (double)(time_t)end) * 1e9);
    return t;
}

int qkv_server_wait(qkv_server *server, double seconds) {
    if (!server) return 1;
    const struct timespec end = after(seconds > 0 ? fmin(seconds, 1e9) : 0);
    pthread_mutex_lock(&server->lock);
    while (!server->stopping &&
           pthread_cond_timedwait(&server->stopped, &server->lock, &end) != ETIMEDOUT) {}
    const int stopped = server->stopping;
    pthread_mutex_unlock(&server->lock);
    return stopped;
}

static void *watch(void *user) {
    qkv_server *server = user;
    while (!qkv_server_wait(server, 1)) qkv_connections_sweep(&server->connections);
    return NULL;
}

/* ---- options ---- */

static int check_options(const qkv_server_options *options, qkv_error *err) {
    if (options->port < 0 || options->port > 65535)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`port` is %d; give 0 to 65535", (int)options->port);
    if (options->bind && !options->token)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`bind` lets other machines in: choose a `token` for those who may");
    if (options->token && !qkv_guard_is_token(options->token))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "a `token` is 16 to 128 letters, digits, - and _ long");
    if (options->max_connections < 0 || options->max_connections > 4096 ||
        (options->max_connections && options->max_connections < 8))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`max_connections` is %d; give 8 to 4096",
                        (int)options->max_connections);
    if (options->max_tokens < 0 || options->max_tokens > QKV_REQUEST_TOKENS)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`max_tokens` is %lld; give 1 to %d",
                        (long long)options->max_tokens, QKV_REQUEST_TOKENS);
    if (!(options->time_limit >= 0))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`time_limit` is less than 0");
    for (const char *at = options->frame_ancestors; at && *at; at++) {
        if (*at < ' ' || *at > '~' || *at == ';' || *at == ',')
            return qkv_fail(err, QKV_ERR_ARGUMENT,
                            "`frame_ancestors` is a list of origins with spaces between them");
    }
    return QKV_OK;
}

static int take_token(qkv_server *server, const char *given, qkv_error *err) {
    unsigned char bytes[RANDOM_BYTES];
    if (given) {
        snprintf(server->token, sizeof server->token, "%s", given);
        return QKV_OK;
    }
    if (getentropy(bytes, sizeof bytes) != 0)
        return qkv_fail(err, QKV_ERR_IO, "the system has no random numbers for a token: %s",
                        strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(server->token + 2 * i, 3, "%02x", bytes[i]);
    return QKV_OK;
}

static int make_texts(qkv_server *server, const qkv_server_options *options, qkv_error *err) {
    qkv_text url = {0}, policy = {0};
    const char *host = options->bind ? options->bind : "127.0.0.1";
    const int v6 = strchr(host, ':') != NULL;
    snprintf(server->cookie, sizeof server->cookie, "qkv-%d", (int)server->port);
    qkv_text_printf(&url, "http://%s%s%s:%d/?token=%s", v6 ? "[" : "", host, v6 ? "]" : "",
                    (int)server->port, server->token);
    qkv_text_printf(&policy,
                    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: "
                    "blob:; connect-src 'self'; form-action 'none'; base-uri 'none'; "
                    "frame-ancestors %s",
                    options->frame_ancestors ? options->frame_ancestors : "'none'");
    server->url = url.data;
    server->policy = policy.data;
    server->framed = options->frame_ancestors != NULL;
    if (url.failed || policy.failed) return qkv_fail_memory(err);
    return qkv_page_bundle_pair("early.js", &server->scripts[0], QKV_SCRIPT_FIRST, "main.js",
                                &server->scripts[1], err);
}

/* ---- beginning ---- */

static int start_watcher(qkv_server *server, qkv_error *err) {
    const int why = pthread_create(&server->watcher, NULL, watch, server);
    server->has_watcher = why == 0;
    return why ? qkv_fail(err, QKV_ERR_BACKEND, "no thread could be started: %s", strerror(why))
               : QKV_OK;
}

static int start_runners(qkv_server *server, qkv_error *err) {
    int status = qkv_job_runner_expect_page(&server->queue, server->pool, &server->first_page, err);
    for (int i = 0; i < QKV_RUNNER_COUNT && status == QKV_OK; i++) {
        server->runners[i] = (qkv_job_runner){.queue = &server->queue,
                                              .pool = server->pool,
                                              .time_limit = server->time_limit,
                                              .kind = (qkv_runner)i};
        status = qkv_job_runner_start(&server->runners[i], err);
    }
    return status;
}

static int start_listening(qkv_server *server, int fds[2], qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < 2 && status == QKV_OK; i++) {
        if (fds[i] < 0) continue;
        status = qkv_serve_listen(server, fds[i], &server->daemons[i], err);
        if (status == QKV_OK) fds[i] = -1; /* the daemon's own */
    }
    return status;
}

static int start(qkv_server *server, const qkv_server_options *options, qkv_error *err) {
    int fds[2];
    int status = qkv_listen(options->bind, options->port, fds, &server->port, err);
    if (status == QKV_OK) status = take_token(server, options->token, err);
    if (status == QKV_OK) status = make_texts(server, options, err);
    if (status == QKV_OK) status = qkv_model_pool_new(&server->pool, options, err);
    if (status == QKV_OK) status = start_runners(server, err);
    if (status == QKV_OK) status = start_watcher(server, err);
    if (status == QKV_OK) status = start_listening(server, fds, err);
    for (size_t i = 0; i < 2; i++) {
        if (fds[i] >= 0) close(fds[i]);
    }
    return status;
}

static qkv_server *make_server(const qkv_server_options *options) {
    qkv_server *server = qkv_calloc(1, sizeof *server);
    pthread_condattr_t clock;
    if (!server) return NULL;
    server->owner = getpid();
    server->any_address = options->bind != NULL;
    server->time_limit = options->time_limit > 0 ? options->time_limit : DEFAULT_SECONDS;
    pthread_mutex_init(&server->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&server->stopped, &clock);
    pthread_condattr_destroy(&clock);
    qkv_queue_init(&server->queue);
    qkv_connections_init(
        &server->connections,
        (size_t)(options->max_connections ? options->max_connections : DEFAULT_CONNECTIONS));
    return server;
}

int qkv_server_new(qkv_server **out, const qkv_server_options *given, qkv_error *err) {
    qkv_server_options options = QKV_SERVER_OPTIONS_INIT;
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, given);
    int status = qkv_sized_read(&options, sizeof options, given, "qkv_server_options", err);
    if (status == QKV_OK) status = check_options(&options, err);
    if (status != QKV_OK) return status;
    qkv_server *server = make_server(&options);
    if (!server) return qkv_fail_memory(err);
    status = start(server, &options, err);
    if (status == QKV_OK)
        *out = server;
    else
        qkv_server_free(server);
    return status;
}

/* ---- asking and ending ---- */

const char *qkv_server_url(const qkv_server *server) {
    return server ? server->url : NULL;
}

void qkv_server_stop(qkv_server *server) {
    if (!server || server->owner != getpid()) return;
    pthread_mutex_lock(&server->lock);
    server->stopping = 1;
    pthread_cond_broadcast(&server->stopped);
    pthread_mutex_unlock(&server->lock);
    qkv_queue_close(&server->queue);
}

void qkv_server_free(qkv_server *server) {
    if (!server || server->owner != getpid()) return;
    qkv_server_stop(server);
    for (int i = 0; i < QKV_RUNNER_COUNT; i++) qkv_job_runner_join(&server->runners[i]);
    if (server->has_watcher) pthread_join(server->watcher, NULL);
    for (size_t i = 0; i < 2; i++) {
        if (server->daemons[i]) MHD_stop_daemon(server->daemons[i]);
    }
    qkv_model_pool_free(server->pool);
    qkv_connections_destroy(&server->connections);
    qkv_queue_destroy(&server->queue);
    pthread_cond_destroy(&server->stopped);
    pthread_mutex_destroy(&server->lock);
    free(server->url);
    free(server->policy);
    for (size_t i = 0; i < 2; i++) qkv_text_release(&server->scripts[i]);
    free(server);
}
