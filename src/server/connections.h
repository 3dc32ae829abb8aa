/*
 * The open connections, and how long each may take.
 *
 * A connection has a deadline: to send a whole request, or to take a whole answer. One that misses it
 * is cut off, however busy it looks; one whose request is being computed has none. When there are too
 * many, one of those that never showed a token has to go, whichever it is: a client that opens connections and
 * says nothing cannot keep the page out, not even one that takes its time.
 */
#ifndef QKV_SERVER_CONNECTIONS_H
#define QKV_SERVER_CONNECTIONS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* Seconds. */
#define QKV_TIME_TO_ASK 30.0
#define QKV_TIME_TO_READ 120.0

/* What is counted. */
typedef enum qkv_bytes {
    QKV_BYTES_IN,  /* of requests that are received or wait, and what their JSON takes */
    QKV_BYTES_OUT, /* of answers that are being sent */
    QKV_BYTES_COUNT
} qkv_bytes;

typedef struct qkv_connection qkv_connection;

typedef struct qkv_connections {
    pthread_mutex_t lock;
    qkv_connection *first;
    size_t n, most;
    size_t n_bytes[QKV_BYTES_COUNT];
    uint64_t dice;
} qkv_connections;

void qkv_connections_init(qkv_connections *all, size_t most);
void qkv_connections_destroy(qkv_connections *all);

/* A new one; NULL when memory is short. */
qkv_connection *qkv_connection_add(qkv_connections *all, int fd);
/* Before its socket is closed. NULL: nothing happens. */
void qkv_connection_remove(qkv_connections *all, qkv_connection *connection);
/* From now on it may take so many seconds; 0: any time. */
void qkv_connection_allow(qkv_connections *all, qkv_connection *connection, double seconds);
/* It has shown the token. */
void qkv_connection_trust(qkv_connections *all, qkv_connection *connection);
/* Cuts off those that are too late. */
void qkv_connections_sweep(qkv_connections *all);

/* Counts bytes: 0 where all together would be more than `most`, and nothing is counted. */
int qkv_connections_reserve(qkv_connections *all, qkv_bytes what, size_t n_bytes, size_t most);
void qkv_connections_release_bytes(qkv_connections *all, qkv_bytes what, size_t n_bytes);

#endif
