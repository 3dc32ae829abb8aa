/*
 * Followers on this machine: copies of the leading process, each at the other end of a socket.
 * Forked rather than threads, because OpenBLAS built for OpenMP is not made to be called from
 * several threads at once; the model's file is mapped and so in memory once.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "sweep/workers.h"

typedef struct local_link {
    struct pollfd *sockets; /* of the followers, by rank - 1; a follower has one, to the leader */
    pid_t *children;
    int n;
    int32_t rank;
} local_link;

/* ---- messages: their length, then themselves ---- */

static int write_all(int socket, const void *data, size_t size) {
    for (const char *at = data; size;) {
        const ssize_t n = send(socket, at, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return 0;
        at += n;
        size -= (size_t)n;
    }
    return 1;
}

static int read_all(int socket, void *data, size_t size) {
    for (char *at = data; size;) {
        const ssize_t n = recv(socket, at, size, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return 0;
        at += n;
        size -= (size_t)n;
    }
    return 1;
}

static int local_send(void *user, int32_t to, const void *data, size_t size) {
    const local_link *link = user;
    const int socket = link->sockets[to ? to - 1 : 0].fd;
    return write_all(socket, &size, sizeof size) && write_all(socket, data, size);
}

/* The follower whose message is there, or who is gone; -1 when there is none. */
static int look(const local_link *link, int timeout) {
    int n;
    do {
        n = poll(link->sockets, (nfds_t)link->n, timeout);
    } while (n < 0 && errno == EINTR);
    for (int i = 0; i < link->n && n > 0; i++) {
        if (link->sockets[i].revents) return i;
    }
    return -1;
}

static int local_is_waiting(void *user, int milliseconds) {
    return look(user, milliseconds) >= 0;
}

static int local_receive(void *user, int32_t *from, void *data, size_t *size) {
    const local_link *link = user;
    const int at = link->rank == 0 ? look(link, -1) : 0;
    size_t length = 0;
    *from = link->rank == 0 ? at + 1 : 0;
    if (at < 0 || !read_all(link->sockets[at].fd, &length, sizeof length) || length > *size) {
        return 0;
    }
    *size = length;
    return read_all(link->sockets[at].fd, data, length);
}

/* A descriptor below 0 is one that poll passes over. */
static void local_forget(void *user, int32_t rank) {
    struct pollfd *socket = &((const local_link *)user)->sockets[rank - 1];
    if (socket->fd >= 0) close(socket->fd);
    *socket = (struct pollfd){.fd = -1};
}

/* They write no files, and what they have computed is sent: nothing is lost but the time. */
static void local_abandon(void *user) {
    const local_link *link = user;
    for (int i = 0; i < link->n; i++) kill(link->children[i], SIGKILL);
}

/* ---- starting and ending ---- */

/* What a copy of the leader keeps: its own socket. */
static void become_follower(qkv_sweep_transport *to, int32_t rank, int socket) {
    local_link *link = to->user;
    for (int i = 0; i < link->n; i++) close(link->sockets[i].fd);
    link->n = 1;
    link->sockets[0] = (struct pollfd){.fd = socket, .events = POLLIN};
    to->rank = link->rank = rank;
}

/* As fork. Signals that ask for an end often go to all processes, and are the leader's to deal with:
 * when it goes, in whatever way, the copies go. They wait here until the copy ignores them. */
static pid_t fork_ignoring_signals(void) {
    const pid_t leader = getpid();
    sigset_t ends, before;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, &before);
    const pid_t child = fork();
    const int code = errno;
    if (child == 0) {
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() != leader) _exit(EXIT_FAILURE);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = code;
    return child;
}

static int start_follower(qkv_sweep_transport *to, int32_t rank, qkv_error *err) {
    local_link *link = to->user;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return qkv_fail(err, QKV_ERR_IO, "cannot start process %d: %s", (int)rank, strerror(errno));
    }
    const pid_t child = fork_ignoring_signals();
    if (child < 0) {
        const int code = errno;
        close(ends[0]);
        close(ends[1]);
        return qkv_fail(err, QKV_ERR_IO, "cannot start process %d: %s", (int)rank, strerror(code));
    }
    close(ends[child == 0 ? 0 : 1]);
    if (child == 0) {
        become_follower(to, rank, ends[1]);
        return QKV_OK;
    }
    link->sockets[link->n] = (struct pollfd){.fd = ends[0], .events = POLLIN};
    link->children[link->n++] = child;
    to->n_processes = link->n + 1;
    return QKV_OK;
}

int qkv_workers_local_start(qkv_sweep_transport *to, int32_t n, qkv_error *err) {
    *to = (qkv_sweep_transport)QKV_SWEEP_TRANSPORT_INIT;
    to->send = local_send;
    to->receive = local_receive;
    to->is_waiting = local_is_waiting;
    to->forget = local_forget;
    to->abandon = local_abandon;
    local_link *link = qkv_calloc(1, sizeof *link);
    to->user = link;
    if (!link) return qkv_fail_memory(err);
    link->sockets = qkv_calloc((size_t)n + 1, sizeof *link->sockets);
    link->children = qkv_calloc((size_t)n + 1, sizeof *link->children);
    if (!link->sockets || !link->children) return qkv_fail_memory(err);
    int status = QKV_OK;
    for (int32_t rank = 1; rank <= n && status == QKV_OK && to->rank == 0; rank++) {
        status = start_follower(to, rank, err);
    }
    return status;
}

void qkv_workers_local_end(qkv_sweep_transport *to) {
    local_link *link = to->user;
    if (!link) return;
    /* What the host has buffered, and its handlers of atexit, are the leader's. */
    if (link->rank != 0) _exit(EXIT_SUCCESS);
    for (int32_t rank = 1; rank <= link->n; rank++) local_forget(link, rank);
    for (int i = 0; i < link->n; i++) {
        while (waitpid(link->children[i], NULL, 0) < 0 && errno == EINTR) continue;
    }
    free(link->sockets);
    free(link->children);
    free(link);
    to->user = NULL;
}
