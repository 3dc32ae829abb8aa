/*
 * Processes that share a sweep. One leads: it keeps the file of results, hands out blocks, and
 * computes some itself. The others follow: they compute what they are given.
 *
 * How messages travel is a link, of which there are two: to processes started on this machine
 * (crew_local.c), and to those of mpirun (crew_mpi.c, the one file that knows MPI). Every process
 * computes with one thread, because a matrix product that threads share comes out a little
 * different in its last bits: so the values do not depend on how many there are.
 */
#ifndef QKV_CLI_CREW_H
#define QKV_CLI_CREW_H

#include "base/fail.h"
#include "qkv/sweep.h"

typedef struct cli_crew {
    int rank;        /* 0 leads */
    int n_followers; /* ranks 1 to n */
    /* Messages between rank 0 and another; a follower names 0. They return 0 when that one is
     * gone. `from` receives who sent it; `size` the room, then the length. */
    int (*send)(struct cli_crew *crew, int to, const void *data, size_t size);
    int (*receive)(struct cli_crew *crew, int *from, void *data, size_t *size);
    /* 1 when a message is there to be received. */
    int (*is_waiting)(struct cli_crew *crew);
    /* The leader is done with a follower, whose end is then no news. */
    void (*forget)(struct cli_crew *crew, int rank);
    void *link;
} cli_crew;

/* ---- crew.c ---- */

int crew_lead(cli_crew *crew, const qkv_sweep *sweep, qkv_session *session, qkv_results *results,
              const qkv_sweep_options *options, int *stopped, qkv_error *err);
int crew_follow(cli_crew *crew, const qkv_sweep *sweep, qkv_session *session, qkv_error *err);
/* A follower that cannot go on tells the leader why, as the last thing it does. */
void crew_give_up(cli_crew *crew, int status, const qkv_error *problem);

/* ---- crew_local.c ---- */

/* Starts n followers, which are copies of this process: call it before there are threads. Returns
 * in all of them, with their ranks. */
int crew_local_start(cli_crew *crew, int n, qkv_error *err);
/* Waits for the followers; a follower ends here and does not return. */
void crew_local_end(cli_crew *crew);

/* ---- crew_mpi.c ---- */

/* 1 under mpirun, with more than one process. */
int crew_mpi_is_wanted(void);
int crew_mpi_start(cli_crew *crew, qkv_error *err);
/* After a failure the process just ends, and mpirun ends the others. */
void crew_mpi_end(cli_crew *crew, int status);

#endif
