#define _POSIX_C_SOURCE 200809L
#include "server/connections.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "base/memory.h"

struct qkv_connection {
    int fd;
    int trusted;
    int cut;         /* its socket was shut down, and waits to be closed */
    double deadline; /* 0: none */
    qkv_connection *next;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void qkv_connections_init(qkv_connections *all, size_t most) {
    *all = (qkv_connections){.most = most};
    pthread_mutex_init(&all->lock, NULL);
}

void qkv_connections_destroy(qkv_connections *all) {
    pthread_mutex_destroy(&all->lock);
}

/* The socket stays open until its owner sees that it has ended. */
static void cut(qkv_connection *connection) {
    if (connection->cut) return;
    connection->cut = 1;
    shutdown(connection->fd, SHUT_RDWR);
}

static int is_stranger(const qkv_connection *connection) {
    return !connection->trusted && !connection->cut && connection->deadline > 0;
}

/* Any of them: of a flood the oldest would always be one that waits for its turn honestly. */
static void make_room(qkv_connections *all) {
    size_t n = 0;
    if (all->n < all->most / 4 * 3) return;
    for (const qkv_connection *at = all->first; at; at = at->next) n += is_stranger(at) != 0;
    if (n == 0) return;
    all->dice = all->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    size_t which = (size_t)(all->dice >> 33) % n;
    for (qkv_connection *at = all->first; at; at = at->next) {
        if (!is_stranger(at)) continue;
        if (which-- == 0) {
            cut(at);
            return;
        }
    }
}

qkv_connection *qkv_connection_add(qkv_connections *all, int fd) {
    qkv_connection *connection = qkv_calloc(1, sizeof *connection);
    if (!connection) return NULL;
    connection->fd = fd;
    connection->deadline = now() + QKV_TIME_TO_ASK;
    pthread_mutex_lock(&all->lock);
    make_room(all);
    connection->next = all->first;
    all->first = connection;
    all->n++;
    pthread_mutex_unlock(&all->lock);
    return connection;
}

void qkv_connection_remove(qkv_connections *all, qkv_connection *connection) {
    if (!connection) return;
    pthread_mutex_lock(&all->lock);
    for (qkv_connection **at = &all->first; *at; at = &(*at)->next) {
        if (*at != connection) continue;
        *at = connection->next;
        all->n--;
        break;
    }
    pthread_mutex_unlock(&all->lock);
    free(connection);
}

void qkv_connection_allow(qkv_connections *all, qkv_connection *connection, double seconds) {
    if (!connection) return;
    pthread_mutex_lock(&all->lock);
    connection->deadline = seconds > 0 ? now() + seconds : 0;
    pthread_mutex_unlock(&all->lock);
}

void qkv_connection_trust(qkv_connections *all, qkv_connection *connection) {
    if (!connection) return;
    pthread_mutex_lock(&all->lock);
    connection->trusted = 1;
    pthread_mutex_unlock(&all->lock);
}

void qkv_connections_sweep(qkv_connections *all) {
    const double time = now();
    pthread_mutex_lock(&all->lock);
    for (qkv_connection *at = all->first; at; at = at->next) {
        if (at->deadline > 0 && at->deadline < time) cut(at);
    }
    pthread_mutex_unlock(&all->lock);
}

int qkv_connections_reserve(qkv_connections *all, qkv_bytes what, size_t n_bytes, size_t most) {
    pthread_mutex_lock(&all->lock);
    const int fits = n_bytes <= most && all->n_bytes[what] <= most - n_bytes;
    if (fits) all->n_bytes[what] += n_bytes;
    pthread_mutex_unlock(&all->lock);
    return fits;
}

void qkv_connections_release_bytes(qkv_connections *all, qkv_bytes what, size_t n_bytes) {
    pthread_mutex_lock(&all->lock);
    all->n_bytes[what] -= n_bytes;
    pthread_mutex_unlock(&all->lock);
}
