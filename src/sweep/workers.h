/*
 * Processes that share a sweep. One leads: it keeps the file of results, hands out blocks, and
 * computes some itself. The others follow: they compute what they are given.
 *
 * How messages travel is a link, of which there are two: to processes started on this machine
 * (workers_local.c), and to those of mpirun (workers_mpi.c, the one file that knows MPI). Every process
 * computes with one thread, because a matrix product that threads share comes out a little
 * different in its last bits: so the values do not depend on how many there are.
 */
#ifndef QKV_SWEEP_WORKERS_H
#define QKV_SWEEP_WORKERS_H

#include "base/fail.h"
#include "qkv/sweep.h"

typedef struct qkv_workers {
    int rank;        /* 0 leads */
    int n_followers; /* ranks 1 to n */
    /* Messages between rank 0 and another; a follower names 0. They return 0 when that one is
     * gone. `from` receives who sent it; `size` the room, then the length. */
    int (*send)(struct qkv_workers *workers, int to, const void *data, size_t size);
    int (*receive)(struct qkv_workers *workers, int *from, void *data, size_t *size);
    /* 1 when a message is there to be received, for which it waits so long. */
    int (*is_waiting)(struct qkv_workers *workers, int milliseconds);
    /* The leader is done with a follower, whose end is then no news. */
    void (*forget)(struct qkv_workers *workers, int rank);
    /* The leader waits for nobody any more: followers end in the middle of their work. */
    void (*abandon)(struct qkv_workers *workers);
    void *link;
} qkv_workers;

/* ---- workers.c ---- */

int qkv_workers_lead(qkv_workers *workers, const qkv_sweep *sweep, qkv_session *session,
                     qkv_sweep_writer *results, const qkv_sweep_options *options, int *stopped,
                     qkv_error *err);
int qkv_workers_follow(qkv_workers *workers, const qkv_sweep *sweep, qkv_session *session,
                       qkv_error *err);
/* A follower that cannot go on tells the leader why, as the last thing it does. */
void qkv_workers_give_up(qkv_workers *workers, int status, const qkv_error *problem);

/* ---- workers_local.c ---- */

/* Starts n followers, which are copies of this process: call it before there are threads. Returns
 * in all of them, with their ranks. */
int qkv_workers_local_start(qkv_workers *workers, int n, qkv_error *err);
/* Waits for the followers; a follower ends here and does not return. */
void qkv_workers_local_end(qkv_workers *workers);

/* ---- workers_mpi.c ---- */

/* 1 under mpirun, with more than one process. */
int qkv_workers_mpi_is_wanted(void);
int qkv_workers_mpi_start(qkv_workers *workers, qkv_error *err);
/* After a failure the process just ends, and mpirun ends the others. */
void qkv_workers_mpi_end(qkv_workers *workers, int status);

#endif
