/* What a server holds, and what its files share. */
#ifndef QKV_SERVER_SERVE_H
#define QKV_SERVER_SERVE_H

#include <microhttpd.h>
#include <pthread.h>
#include <sys/types.h>

#include "base/text.h"
#include "server/connections.h"
#include "server/guard.h"
#include "server/job_runner.h"

/* Bytes. */
#define QKV_SERVE_BODY ((size_t)1 << 20)          /* of a request in JSON */
#define QKV_SERVE_FILE ((size_t)32 << 20)         /* of a file that is handed over */
#define QKV_SERVE_ALL_BODIES ((size_t)96 << 20)   /* of all that are received, or wait as JSON */
#define QKV_SERVE_ALL_REPLIES ((size_t)512 << 20) /* of all answers that are being sent */
#define QKV_SERVE_HEADERS ((size_t)32 << 10)      /* of a request's first line and headers */

/* The page's modules as two scripts, in place of forty requests that would wait for each other: what asks
 * for the first maps, and all the rest. */
#define QKV_SCRIPT_FIRST "first.js"
#define QKV_SCRIPT_REST "explorer.js"

struct qkv_server {
    pid_t owner; /* the process that has its threads: one that was forked from it does not */
    qkv_model_pool *pool;
    qkv_queue queue;
    qkv_connections connections;
    struct MHD_Daemon *daemons[2]; /* one for each address; NULL: none */
    qkv_job_runner runners[QKV_RUNNER_COUNT];
    qkv_job first_page; /* what is computed before the page is there */
    pthread_t watcher;
    int has_watcher;
    int any_address; /* `bind` was given */
    int32_t port;
    char token[QKV_GUARD_TOKEN_SIZE];
    char cookie[32]; /* its name: cookies do not tell ports apart */
    char *url;
    char *policy;        /* Content-Security-Policy */
    qkv_text scripts[2]; /* QKV_SCRIPT_FIRST, QKV_SCRIPT_REST */
    int framed;          /* other pages may show it in a frame */
    double time_limit;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t stopped;
    int stopping;
};

/* http.c */

/* Listens at a socket, which it takes over. */
int qkv_serve_listen(qkv_server *server, int fd, struct MHD_Daemon **out, qkv_error *err);

/* listen.c */

/* Sockets that listen: one or two. Those that were not opened are -1. */
int qkv_listen(const char *address, int32_t port, int fds[2], int32_t *chosen, qkv_error *err);

#endif
